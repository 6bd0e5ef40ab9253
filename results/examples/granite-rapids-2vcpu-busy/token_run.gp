# token_run.gp - written by bench; draw it again with: gnuplot token_run.gp
name = 'token_run'
data = 'token_run.csv'
title_text = 'The run: token times, and what disturbed them'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB'
warning_text = ''
height = 952
array string[13]
string[1] = 'Q4_0 packed'
string[2] = 'Q4_K_M packed'
string[3] = 'Q6_K mmap'
string[4] = 'CPU time stolen'
string[5] = 'CPU time of others'
string[6] = 'page faults and refaults'
string[7] = 'Each dot is a token, pass or run'
string[8] = 'measured 2026-11-23 by slmbench 0.1.0 (03d64df13f)'
string[9] = 'time of a token, pass or run, relative to the median of its point (logarithmic)'
string[10] = 'CPU time that others took, %'
string[11] = 'minutes since the run began'
string[12] = 'page faults and refaults per token'

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
    set label title_text at screen 0.02000, screen 0.96009 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.92438 left font ",12" textcolor rgb '#555555' noenhanced
    set label '' at screen 0.03083, screen 0.09988 point pt 7 ps 1.2*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.05000, screen 0.09988 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.03083, screen 0.07258 point pt 7 ps 1.2*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.05000, screen 0.07258 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.21407, screen 0.09988 point pt 7 ps 1.2*point lw 1.5 lc rgb color(2)
    set label string[3] at screen 0.23324, screen 0.09988 left font ",14" textcolor rgb ink noenhanced
    set object rectangle from screen 0.20324, screen 0.06732 to screen 0.22490, screen 0.07783 fs transparent solid 1 noborder fc rgb bad
    set label string[4] at screen 0.23324, screen 0.07258 left font ",14" textcolor rgb ink noenhanced
    set object rectangle from screen 0.38647, screen 0.09463 to screen 0.40814, screen 0.10514 fs transparent solid 1 noborder fc rgb warn
    set label string[5] at screen 0.41647, screen 0.09988 left font ",14" textcolor rgb ink noenhanced
    set object rectangle from screen 0.38647, screen 0.06732 to screen 0.40814, screen 0.07783 fs transparent solid 1 noborder fc rgb grey
    set label string[6] at screen 0.41647, screen 0.07258 left font ",14" textcolor rgb ink noenhanced
    set label string[7] at screen 0.02000, screen 0.03991 left font ",12" textcolor rgb '#555555' noenhanced
    set label string[8] at screen 0.02000, screen 0.01786 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.07659; set rmargin at screen 0.98000
    set tmargin at screen 0.86556; set bmargin at screen 0.48745
    unset logscale
    set logscale y
    set xrange [0:14.964597]; set yrange [0.48347379:2.0683645]
    set xtics scale 0.6 noenhanced norotate font ",14" ('' 0, '' 2, '' 4, '' 6, '' 8, '' 10, '' 12, '' 14)
    set ytics scale 0.6 noenhanced  font ",14" ('0.5' 0.5, '1' 1, '2' 2)
    set border 3; set grid noxtics ytics
    set xlabel ''
    set label string[9] at screen 0.07659, screen 0.88131 left font ",12" textcolor rgb ink noenhanced
    set arrow from graph 0, first 1 to graph 1, first 1 nohead lw 1 lc rgb grey back
    plot data using (column("series") == 0 && column("kind") == 0 ? column("minutes") : NaN):(column("relative")) with points pt 7 ps 0.55*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("kind") == 0 ? column("minutes") : NaN):(column("relative")) with points pt 7 ps 0.55*point lw 1.5 lc rgb color(1) notitle, \
         data using (column("series") == 2 && column("kind") == 0 ? column("minutes") : NaN):(column("relative")) with points pt 7 ps 0.55*point lw 1.5 lc rgb color(2) notitle
    unset label; unset arrow; unset object
    set lmargin at screen 0.07659; set rmargin at screen 0.98000
    set tmargin at screen 0.44964; set bmargin at screen 0.33830
    unset logscale
    set xrange [0:14.964597]; set yrange [0:55.176]
    set xtics scale 0.6 noenhanced norotate font ",14" ('' 0, '' 2, '' 4, '' 6, '' 8, '' 10, '' 12, '' 14)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '20' 20, '40' 40)
    set border 3; set grid noxtics ytics
    set xlabel ''
    set label string[10] at screen 0.07659, screen 0.46539 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("kind") == 1 && column("taken") >= 1e-12 ? column("minutes") : NaN):(0):(column("minutes")):(column("end")):(0):(column("taken")) with boxxyerror fs transparent solid 1 noborder lc rgb warn notitle, \
         data using (column("kind") == 1 && column("steal") >= 1e-12 ? column("minutes") : NaN):(0):(column("minutes")):(column("end")):(0):(column("steal")) with boxxyerror fs transparent solid 1 noborder lc rgb bad notitle
    unset label; unset arrow; unset object
    set lmargin at screen 0.07659; set rmargin at screen 0.98000
    set tmargin at screen 0.30049; set bmargin at screen 0.18916
    unset logscale
    set xrange [0:14.964597]; set yrange [0:421431.45]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '2' 2, '4' 4, '6' 6, '8' 8, '10' 10, '12' 12, '14' 14)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '200000' 200000, '400000' 400000)
    set border 3; set grid noxtics ytics
    set xlabel string[11]
    set label string[12] at screen 0.07659, screen 0.31625 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("kind") == 1 && column("faults") >= 1e-12 ? column("minutes") : NaN):(0):(column("minutes")):(column("end")):(0):(column("faults")) with boxxyerror fs transparent solid 1 noborder lc rgb grey notitle
    unset multiplot
    set output
}
