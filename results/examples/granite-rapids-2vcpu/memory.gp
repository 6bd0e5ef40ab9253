# memory.gp - written by bench; draw it again with: gnuplot memory.gp
name = 'memory'
data = 'memory.csv'
title_text = 'Memory charged, and its limit'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB'
warning_text = ''
height = 458
array string[8]
string[1] = 'charged, with page cache that can be given back'
string[2] = 'planned'
string[3] = 'limit'
string[4] = 'Q4_0 packed'
string[5] = 'Q4_K_M packed'
string[6] = 'Q6_K mmap'
string[7] = 'GiB'

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
    set label title_text at screen 0.02000, screen 0.91705 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.84283 left font ",12" textcolor rgb '#555555' noenhanced
    set object rectangle from screen 0.02000, screen 0.10500 to screen 0.04167, screen 0.12683 fs transparent solid 0.28 noborder fc rgb color(0)
    set label string[1] at screen 0.05000, screen 0.11591 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.03083, screen 0.05916 point pt 13 ps 1.4*point lw 1.5 lc rgb color(4)
    set label string[2] at screen 0.05000, screen 0.05916 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.39663, screen 0.11591 to screen 0.41830, screen 0.11591 nohead lw 2.2 lc rgb bad
    set label string[3] at screen 0.42663, screen 0.11591 left font ",14" textcolor rgb ink noenhanced
    set lmargin at screen 0.11732; set rmargin at screen 0.98000
    set tmargin at screen 0.75988; set bmargin at screen 0.30146
    unset logscale
    set xrange [0:8.9660535]; set yrange [2.5:-0.5]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5, '6' 6, '7' 7, '8' 8)
    set ytics scale 0 noenhanced  font ",13" (string[4] 0, string[5] 1, string[6] 2)
    set border 3; set grid xtics noytics
    set xlabel string[7]
    plot data using (column("state") == 0 ? 0 : NaN):(column("position") - 0.34):(0):(column("peak_gib")):(column("position") - 0.34):(column("position") + 0.34) with boxxyerror fs transparent solid 0.28 noborder lc rgb color(0) notitle, \
         data using (column("state") == 1 ? 0 : NaN):(column("position") - 0.34):(0):(column("peak_gib")):(column("position") - 0.34):(column("position") + 0.34) with boxxyerror fs transparent solid 0.28 noborder lc rgb color(1) notitle, \
         data using (column("limit")):(column("position") - 0.45):(column("limit") - (column("limit"))):(column("position") + 0.45 - (column("position") - 0.45)) with vectors nohead lw 2.2 lc rgb bad notitle, \
         data using (column("planned_gib")):(column("position")) with points pt 13 ps 1.4*point lw 1.5 lc rgb color(4) notitle, \
         data using (column("label_x")):(column("label_y")):(strcol("label")) with labels noenhanced left offset 1.122,0 font ",12" textcolor rgb ink notitle
    unset multiplot
    set output
}
