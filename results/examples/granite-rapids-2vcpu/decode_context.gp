# decode_context.gp - written by bench; draw it again with: gnuplot decode_context.gp
name = 'decode_context'
data = 'decode_context.csv'
title_text = 'Decode speed by context depth, 2 threads (recommended)'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB'
warning_text = ''
height = 879
array string[10]
string[1] = 'Q4_0 packed'
string[2] = 'Q4_K_M packed'
string[3] = 'Q6_K mmap'
string[4] = 'roof: bandwidth / bytes'
string[5] = 'partial or disturbed'
string[6] = 'measured 2026-11-23 by slmbench 0.1.0 (03d64df13f)'
string[7] = 'tokens per second'
string[8] = 'context depth, tokens'
string[9] = 'tokens per second (slower series)'

# SPDX-License-Identifier: MIT
#
# style.gp - what all charts share: colours, marks, fonts, the sizes of both pictures
#
# Each chart's script (NAME.gp) is whole: the texts and the height of the chart, this
# file, and what is drawn, so that `gnuplot NAME.gp` draws it again. A style.gp of your own,
# in ~/.config/slmbench/plots, takes the place of this one in the scripts of new charts; the
# SVG that is drawn where there is no gnuplot has the colours of harness/chart/plot.c.
# Names come from model files, so nothing of theirs is read as markup (noenhanced).

set encoding utf8
set datafile separator comma
set datafile columnheaders

# Okabe and Ito's palette: told apart by people with any colour vision.
colors = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000"
color(i) = word(colors, 1 + int(i) % 7)
# Colours come round after seven, then with other marks.
shape(i) = 1 + int(i + 3 * int(i / 7)) % 6
solid(i) = int(word("7 5 9 13 11 15", shape(i)))
hollow(i) = int(word("6 4 8 12 10 14", shape(i)))
# Steps of a quantity, from dark to light (viridis).
steps = "#440154 #482878 #3E4A89 #31688E #26828E #1F9E89 #35B779 #6DCD59 #A5D935"
step(i) = word(steps, 1 + int(i) % 9)
ink = "#333333"
grey = "#777777"
faint = "#d8d8d8"
paper = "#ffffff"
bad = "#b00020"
warn = "#a86a00"

set tics out nomirror textcolor rgb ink
set xlabel textcolor rgb ink
set border lc rgb grey lw 1
set grid lc rgb faint lw 1 lt 1
unset key

# The SVG is 1200 wide and as high as `height`. The PNG is a third larger, since sizes of
# its fonts are points of 4/3 pixels: a text takes the same share of both pictures.
output_png = sprintf("point = 1.14; set terminal pngcairo size 1600,%.0f font 'DejaVu Sans,14' lw 1.8 noenhanced; set output name.'.png'", height * 4 / 3)
output_svg = sprintf("point = 0.55; set terminal svg size 1200,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height)

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    unset label; unset arrow; unset object
    set label title_text at screen 0.02000, screen 0.95677 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.91809 left font ",12" textcolor rgb '#555555' noenhanced
    set arrow from screen 0.81386, screen 0.54039 to screen 0.83552, screen 0.54039 nohead lw 2 lc rgb color(0)
    set label '' at screen 0.82469, screen 0.54039 point pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.84386, screen 0.54039 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.81386, screen 0.51081 to screen 0.83552, screen 0.51081 nohead lw 2 lc rgb color(1)
    set label '' at screen 0.82469, screen 0.51081 point pt solid(1) ps 1.3*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.84386, screen 0.51081 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.81386, screen 0.48123 to screen 0.83552, screen 0.48123 nohead lw 2 lc rgb color(2)
    set label '' at screen 0.82469, screen 0.48123 point pt solid(2) ps 1.3*point lw 1.5 lc rgb color(2)
    set label string[3] at screen 0.84386, screen 0.48123 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.81386, screen 0.45165 to screen 0.83552, screen 0.45165 nohead lw 1.6 dt (9,6) lc rgb grey
    set label string[4] at screen 0.84386, screen 0.45165 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.82469, screen 0.42207 point pt hollow(0) ps 1.4*point lw 1.5 lc rgb grey
    set label string[5] at screen 0.84386, screen 0.42207 left font ",14" textcolor rgb ink noenhanced
    set label string[6] at screen 0.02000, screen 0.01934 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.04941; set rmargin at screen 0.80052
    set tmargin at screen 0.85438; set bmargin at screen 0.39932
    unset logscale
    set xrange [-327.68:4423.68]; set yrange [0:8.7997664]
    set xtics scale 0.6 noenhanced norotate font ",14" ('' 0, '' 4096)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5, '6' 6, '7' 7, '8' 8)
    set border 3; set grid noxtics ytics
    set xlabel ''
    set label string[7] at screen 0.04941, screen 0.87144 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("series") == 0 && column("panel") == 0 && column("doubtful") == 0 ? column("ctx") : NaN):(column("roof_tok_per_s")) with lines lw 1.6 dt (9,6) lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("panel") == 0 && column("doubtful") == 0 ? column("ctx") : NaN):(column("roof_tok_per_s")) with lines lw 1.6 dt (9,6) lc rgb color(1) notitle, \
         data using (column("series") == 0 && column("panel") == 0 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("tok_per_s")) with lines lw 2 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("panel") == 0 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("tok_per_s")) with lines lw 2 lc rgb color(1) notitle, \
         data using (column("series") == 0 && column("panel") == 0 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("lo")):(column("ctx") - (column("ctx"))):(column("hi") - (column("lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("panel") == 0 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("lo")):(column("ctx") - (column("ctx"))):(column("hi") - (column("lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(1) notitle, \
         data using (column("series") == 0 && column("panel") == 0 && column("state") == 0 ? column("ctx") : NaN):(column("tok_per_s")) with points pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("panel") == 0 && column("state") == 0 ? column("ctx") : NaN):(column("tok_per_s")) with points pt solid(1) ps 1.3*point lw 1.5 lc rgb color(1) notitle
    unset label; unset arrow; unset object
    set lmargin at screen 0.04941; set rmargin at screen 0.80052
    set tmargin at screen 0.35836; set bmargin at screen 0.10808
    unset logscale
    set xrange [-327.68:4423.68]; set yrange [0:0.53272484]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '4096' 4096)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '0.2' 0.2, '0.4' 0.4)
    set border 3; set grid noxtics ytics
    set xlabel string[8]
    set label string[9] at screen 0.04941, screen 0.37543 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("series") == 2 && column("panel") == 1 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("tok_per_s")) with lines lw 2 lc rgb color(2) notitle, \
         data using (column("series") == 2 && column("panel") == 1 && column("state") >= 0 && column("state") <= 1 ? column("ctx") : NaN):(column("lo")):(column("ctx") - (column("ctx"))):(column("hi") - (column("lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(2) notitle, \
         data using (column("series") == 2 && column("panel") == 1 && column("state") == 1 ? column("ctx") : NaN):(column("tok_per_s")) with points pt solid(2) ps 1.4*point lc rgb paper notitle, \
         data using (column("series") == 2 && column("panel") == 1 && column("state") == 1 ? column("ctx") : NaN):(column("tok_per_s")) with points pt hollow(2) ps 1.4*point lw 1.5 lc rgb color(2) notitle
    unset multiplot
    set output
}
