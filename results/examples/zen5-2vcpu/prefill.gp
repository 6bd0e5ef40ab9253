# prefill.gp - written by bench; draw it again with: gnuplot prefill.gp
name = 'prefill'
data = 'prefill.csv'
title_text = 'Prefill speed, prompt of 64 tokens'
subtitle_text = 'yi-1.5-9b  ·  AMD EPYC, 2 CPUs  ·  memory limit 6 GiB'
warning_text = ''
height = 352
array string[7]
string[1] = '1 thread'
string[2] = '2 threads'
string[3] = 'Q4_0 packed'
string[4] = 'Q4_K_M packed'
string[5] = 'Q6_K mmap'
string[6] = 'tokens per second'

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
    set label title_text at screen 0.02000, screen 0.89205 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.79545 left font ",12" textcolor rgb '#555555' noenhanced
    set object rectangle from screen 0.89157, screen 0.47159 to screen 0.91323, screen 0.50000 fs transparent solid 0.85 noborder fc rgb color(0)
    set label string[1] at screen 0.92157, screen 0.48580 left font ",14" textcolor rgb ink noenhanced
    set object rectangle from screen 0.89157, screen 0.39773 to screen 0.91323, screen 0.42614 fs transparent solid 0.85 noborder fc rgb color(1)
    set label string[2] at screen 0.92157, screen 0.41193 left font ",14" textcolor rgb ink noenhanced
    set lmargin at screen 0.11732; set rmargin at screen 0.87823
    set tmargin at screen 0.68750; set bmargin at screen 0.21023
    unset logscale
    set xrange [0:79.912617]; set yrange [2.5:-0.5]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60, '70' 70)
    set ytics scale 0 noenhanced  font ",13" (string[3] 0, string[4] 1, string[5] 2)
    set border 3; set grid xtics noytics
    set xlabel string[6]
    plot data using (column("group") == 0 && column("state") == 0 ? 0 : NaN):(column("position") - 0.16892857):(0):(column("tok_per_s")):(column("position") - 0.16892857):(column("position") + 0.16892857) with boxxyerror fs transparent solid 0.85 noborder lc rgb color(0) notitle, \
         data using (column("group") == 1 && column("state") == 0 ? 0 : NaN):(column("position") - 0.16892857):(0):(column("tok_per_s")):(column("position") - 0.16892857):(column("position") + 0.16892857) with boxxyerror fs transparent solid 0.85 noborder lc rgb color(1) notitle, \
         data using (column("state") >= 0 && column("state") <= 1 ? column("lo") : NaN):(column("position")):(column("hi") - (column("lo"))):(column("position") - (column("position"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb ink notitle, \
         data using (column("label_x")):(column("label_y")):(strcol("label")) with labels noenhanced left offset 0.918,0 font ",12" textcolor rgb ink notitle
    unset multiplot
    set output
}
