# cost_speed.gp - written by bench; draw it again with: gnuplot cost_speed.gp
name = 'cost_speed'
data = 'cost_speed.csv'
title_text = 'What an answer costs, and how fast it comes'
subtitle_text = 'yi-1.5-9b  ·  context depth 4096  ·  95 % intervals  ·  machines that work 100 % of the time on one sequence'
warning_text = ''
height = 710
array string[6]
string[1] = 'AMD EPYC, 2 CPUs: Q4_0'
string[2] = 'Intel(R) Xeon(R) Processor, 2 CPUs: Q4_K_M'
string[3] = 'measured 2026-11-23 by several versions of slmbench'
string[4] = 'tokens per second, decoding (more is better)'
string[5] = 'USD for a million tokens of answers (less is better)'

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
    set label title_text at screen 0.02000, screen 0.94648 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.89859 left font ",12" textcolor rgb '#555555' noenhanced
    set label '' at screen 0.69850, screen 0.49507 point pt solid(0) ps 1.7*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.71767, screen 0.49507 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.69850, screen 0.45845 point pt solid(1) ps 1.7*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.71767, screen 0.45845 left font ",14" textcolor rgb ink noenhanced
    set label string[3] at screen 0.02000, screen 0.02394 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.03777; set rmargin at screen 0.67434
    set tmargin at screen 0.81972; set bmargin at screen 0.13380
    unset logscale
    set xrange [0:11.332134]; set yrange [0:5.9372193]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '2' 2, '4' 4, '6' 6, '8' 8, '10' 10)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5)
    set border 3; set grid xtics ytics
    set xlabel string[4]
    set label string[5] at screen 0.03777, screen 0.84085 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("machine") == 0 ? column("lo") : NaN):(column("cost")):(column("hi") - (column("lo"))):(column("cost") - (column("cost"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("lo") : NaN):(column("cost")):(column("hi") - (column("lo"))):(column("cost") - (column("cost"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(1) notitle, \
         data using (column("machine") == 0 ? column("tok_per_s") : NaN):(column("cost_lo")):(column("tok_per_s") - (column("tok_per_s"))):(column("cost_hi") - (column("cost_lo"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("tok_per_s") : NaN):(column("cost_lo")):(column("tok_per_s") - (column("tok_per_s"))):(column("cost_hi") - (column("cost_lo"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(1) notitle, \
         data using (column("machine") == 0 ? column("tok_per_s") : NaN):(column("cost")) with points pt solid(0) ps 1.7*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("tok_per_s") : NaN):(column("cost")) with points pt solid(1) ps 1.7*point lw 1.5 lc rgb color(1) notitle
    unset multiplot
    set output
}
