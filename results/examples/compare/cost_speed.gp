# cost_speed.gp - written by bench; draw it again with: gnuplot cost_speed.gp
name = 'cost_speed'
data = 'cost_speed.csv'
title_text = 'What an answer costs, and how fast it comes'
subtitle_text = 'yi-1.5-9b  ·  context depth 4096  ·  95 % intervals  ·  machines that work 100 % of the time on one sequence'
warning_text = ''
height = 689
array string[5]
string[1] = 'zen5-2vcpu, Q4_0'
string[2] = 'granite-rapids-2vcpu, Q4_K_M'
string[3] = 'tokens per second, decoding (more is better)'
string[4] = 'USD for a million tokens of answers (less is better)'

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

# The PNG is 1400 wide, the SVG 1200 and as high as `height`.
output_png = sprintf("point = 1; set terminal pngcairo size 1400,%.0f font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'", height * 1.4 / 1.2)
output_svg = sprintf("point = 0.55; set terminal svg size 1200,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height)

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    unset label; unset arrow; unset object
    set label title_text at screen 0.02000, screen 0.94485 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.89550 left font ",12" textcolor rgb '#555555' noenhanced
    set label '' at screen 0.76497, screen 0.47968 point pt solid(0) ps 1.7*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.78413, screen 0.47968 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.76497, screen 0.44194 point pt solid(1) ps 1.7*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.78413, screen 0.44194 left font ",14" textcolor rgb ink noenhanced
    set lmargin at screen 0.03723; set rmargin at screen 0.74080
    set tmargin at screen 0.81422; set bmargin at screen 0.10740
    unset logscale
    set xrange [0:11.332134]; set yrange [0:5.9372193]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '2' 2, '4' 4, '6' 6, '8' 8, '10' 10)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5)
    set border 3; set grid xtics ytics
    set xlabel string[3]
    set label string[4] at screen 0.03723, screen 0.83599 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("machine") == 0 ? column("lo") : NaN):(column("cost")):(column("hi") - (column("lo"))):(column("cost") - (column("cost"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("lo") : NaN):(column("cost")):(column("hi") - (column("lo"))):(column("cost") - (column("cost"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(1) notitle, \
         data using (column("machine") == 0 ? column("tok_per_s") : NaN):(column("cost_lo")):(column("tok_per_s") - (column("tok_per_s"))):(column("cost_hi") - (column("cost_lo"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("tok_per_s") : NaN):(column("cost_lo")):(column("tok_per_s") - (column("tok_per_s"))):(column("cost_hi") - (column("cost_lo"))) with vectors heads size screen 0.003,90 lw 1.4 lc rgb color(1) notitle, \
         data using (column("machine") == 0 ? column("tok_per_s") : NaN):(column("cost")) with points pt solid(0) ps 1.7*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("machine") == 1 ? column("tok_per_s") : NaN):(column("cost")) with points pt solid(1) ps 1.7*point lw 1.5 lc rgb color(1) notitle
    unset multiplot
    set output
}
