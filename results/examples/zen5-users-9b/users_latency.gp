# users_latency.gp - written by bench; draw it again with: gnuplot users_latency.gp
name = 'users_latency'
data = 'users_latency.csv'
title_text = 'Throughput against latency; numbers are users'
subtitle_text = 'yi-1.5-9b-Q4_K_M  ·  prompts 64, answers 32 tokens  ·  AMD EPYC, 2 CPUs  ·  p90 not known: slmbench with 2 users'
warning_text = ''
height = 829
array string[10]
string[1] = 'llama.cpp'
string[2] = 'slmbench'
string[3] = 'partial or disturbed'
string[4] = 'measured 2026-11-24 by slmbench 0.1.0 (4ebc75bd0b)'
string[5] = 'p90 TTFT (visible), s'
string[6] = 'limit 5 s'
string[7] = 'tokens per second, of all users together'
string[8] = 'p90 ms per token'
string[9] = 'limit 250 ms'

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
    set label title_text at screen 0.02000, screen 0.95416 left font ",18" textcolor rgb '#000000' noenhanced
    set label subtitle_text at screen 0.02000, screen 0.91315 left font ",12" textcolor rgb '#555555' noenhanced
    set arrow from screen 0.83837, screen 0.51146 to screen 0.86003, screen 0.51146 nohead lw 2 lc rgb color(0)
    set label '' at screen 0.84920, screen 0.51146 point pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.86837, screen 0.51146 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.83837, screen 0.48010 to screen 0.86003, screen 0.48010 nohead lw 2 lc rgb color(1)
    set label '' at screen 0.84920, screen 0.48010 point pt solid(1) ps 1.3*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.86837, screen 0.48010 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.84920, screen 0.44873 point pt hollow(0) ps 1.5*point lw 1.5 lc rgb grey
    set label string[3] at screen 0.86837, screen 0.44873 left font ",14" textcolor rgb ink noenhanced
    set label string[4] at screen 0.02000, screen 0.02051 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.06106; set rmargin at screen 0.82503
    set tmargin at screen 0.84560; set bmargin at screen 0.50181
    unset logscale
    set logscale y
    set xrange [0:17.6099]; set yrange [0.82523077:48.204595]
    set xtics scale 0.6 noenhanced norotate font ",14" ('' 0, '' 2, '' 4, '' 6, '' 8, '' 10, '' 12, '' 14, '' 16)
    set ytics scale 0.6 noenhanced  font ",14" ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20)
    set border 3; set grid noxtics ytics
    set xlabel ''
    set label string[5] at screen 0.06106, screen 0.86369 left font ",12" textcolor rgb ink noenhanced
    set arrow from graph 0, first 5 to graph 1, first 5 nohead lw 1.6 dt (9,6) lc rgb bad front
    set label string[6] at graph 0.01, first 5 left offset 0.000,0.476 rotate by 0.00 font ",12" textcolor rgb bad noenhanced front
    plot data using (column("series") == 0 ? column("x") : NaN):(column("upper")) with lines lw 2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("upper")) with lines lw 2 lc rgb color(1) notitle, \
         data using (column("series") == 0 ? column("x") : NaN):(column("upper_lo")):(column("x") - (column("x"))):(column("upper_hi") - (column("upper_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("upper_lo")):(column("x") - (column("x"))):(column("upper_hi") - (column("upper_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(1) notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt solid(0) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt hollow(0) ps 1.5*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt solid(1) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt hollow(1) ps 1.5*point lw 1.5 lc rgb color(1) notitle, \
         data using (column("upper_label_x")):(column("upper_label_y")):(column("series") == 0 ? strcol("n_users") : "") with labels noenhanced center offset 0.000,0 font ",12" textcolor rgb color(0) notitle, \
         data using (column("upper_label_x")):(column("upper_label_y")):(column("series") == 1 ? strcol("n_users") : "") with labels noenhanced center offset 0.000,0 font ",12" textcolor rgb color(1) notitle
    unset label; unset arrow; unset object
    set lmargin at screen 0.06106; set rmargin at screen 0.82503
    set tmargin at screen 0.45838; set bmargin at screen 0.11460
    unset logscale
    set logscale y
    set xrange [0:17.6099]; set yrange [110.46:3208.0213]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0' 0, '2' 2, '4' 4, '6' 6, '8' 8, '10' 10, '12' 12, '14' 14, '16' 16)
    set ytics scale 0.6 noenhanced  font ",14" ('200' 200, '500' 500, '1000' 1000, '2000' 2000)
    set border 3; set grid noxtics ytics
    set xlabel string[7]
    set label string[8] at screen 0.06106, screen 0.47648 left font ",12" textcolor rgb ink noenhanced
    set arrow from graph 0, first 250 to graph 1, first 250 nohead lw 1.6 dt (9,6) lc rgb bad front
    set label string[9] at graph 0.01, first 250 left offset 0.000,0.476 rotate by 0.00 font ",12" textcolor rgb bad noenhanced front
    plot data using (column("series") == 0 ? column("x") : NaN):(column("lower")) with lines lw 2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("lower")) with lines lw 2 lc rgb color(1) notitle, \
         data using (column("series") == 0 ? column("x") : NaN):(column("lower_lo")):(column("x") - (column("x"))):(column("lower_hi") - (column("lower_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("lower_lo")):(column("x") - (column("x"))):(column("lower_hi") - (column("lower_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(1) notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt solid(0) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt hollow(0) ps 1.5*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt solid(1) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt hollow(1) ps 1.5*point lw 1.5 lc rgb color(1) notitle, \
         data using (column("lower_label_x")):(column("lower_label_y")):(column("series") == 0 ? strcol("n_users") : "") with labels noenhanced center offset 0.000,0 font ",12" textcolor rgb color(0) notitle, \
         data using (column("lower_label_x")):(column("lower_label_y")):(column("series") == 1 ? strcol("n_users") : "") with labels noenhanced center offset 0.000,0 font ",12" textcolor rgb color(1) notitle
    unset multiplot
    set output
}
