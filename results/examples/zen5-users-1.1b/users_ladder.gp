# users_ladder.gp - written by bench; draw it again with: gnuplot users_ladder.gp
name = 'users_ladder'
data = 'users_ladder.csv'
title_text = 'Throughput by number of users'
subtitle_text = 'tinyllama-1.1b-Q4_K_M  ·  prompts 128, answers 64 tokens  ·  AMD EPYC, 2 CPUs'
warning_text = ''
height = 829
array string[9]
string[1] = 'ik_llama.cpp'
string[2] = 'llama.cpp'
string[3] = 'slmbench'
string[4] = 'partial or disturbed'
string[5] = 'measured 2026-11-24 by slmbench 0.1.0 (4ebc75bd0b)'
string[6] = 'tok/s of all users'
string[7] = 'users'
string[8] = 'tok/s of each'

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
    set arrow from screen 0.83837, screen 0.52714 to screen 0.86003, screen 0.52714 nohead lw 2 lc rgb color(0)
    set label '' at screen 0.84920, screen 0.52714 point pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0)
    set label string[1] at screen 0.86837, screen 0.52714 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.83837, screen 0.49578 to screen 0.86003, screen 0.49578 nohead lw 2 lc rgb color(1)
    set label '' at screen 0.84920, screen 0.49578 point pt solid(1) ps 1.3*point lw 1.5 lc rgb color(1)
    set label string[2] at screen 0.86837, screen 0.49578 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.83837, screen 0.46441 to screen 0.86003, screen 0.46441 nohead lw 2 lc rgb color(2)
    set label '' at screen 0.84920, screen 0.46441 point pt solid(2) ps 1.3*point lw 1.5 lc rgb color(2)
    set label string[3] at screen 0.86837, screen 0.46441 left font ",14" textcolor rgb ink noenhanced
    set label '' at screen 0.84920, screen 0.43305 point pt hollow(0) ps 1.5*point lw 1.5 lc rgb grey
    set label string[4] at screen 0.86837, screen 0.43305 left font ",14" textcolor rgb ink noenhanced
    set label string[5] at screen 0.02000, screen 0.02051 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.05330; set rmargin at screen 0.82503
    set tmargin at screen 0.84560; set bmargin at screen 0.50181
    unset logscale
    set xrange [0.5:8.5]; set yrange [0:174.09436]
    set xtics scale 0.6 noenhanced norotate font ",14" ('' 1, '' 2, '' 4, '' 8)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '50' 50, '100' 100, '150' 150)
    set border 3; set grid noxtics ytics
    set xlabel ''
    set label string[6] at screen 0.05330, screen 0.86369 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("series") == 0 ? column("x") : NaN):(column("upper")) with lines lw 2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("upper")) with lines lw 2 lc rgb color(1) notitle, \
         data using (column("series") == 2 ? column("x") : NaN):(column("upper")) with lines lw 2 lc rgb color(2) notitle, \
         data using (column("series") == 0 ? column("x") : NaN):(column("upper_lo")):(column("x") - (column("x"))):(column("upper_hi") - (column("upper_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("upper_lo")):(column("x") - (column("x"))):(column("upper_hi") - (column("upper_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(1) notitle, \
         data using (column("series") == 2 ? column("x") : NaN):(column("upper_lo")):(column("x") - (column("x"))):(column("upper_hi") - (column("upper_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(2) notitle, \
         data using (column("series") == 0 && column("state") == 0 ? column("x") : NaN):(column("upper")) with points pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt solid(0) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt hollow(0) ps 1.5*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt solid(1) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt hollow(1) ps 1.5*point lw 1.5 lc rgb color(1) notitle, \
         data using (column("series") == 2 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt solid(2) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 2 && column("state") == 1 ? column("x") : NaN):(column("upper")) with points pt hollow(2) ps 1.5*point lw 1.5 lc rgb color(2) notitle
    unset label; unset arrow; unset object
    set lmargin at screen 0.05330; set rmargin at screen 0.82503
    set tmargin at screen 0.45838; set bmargin at screen 0.11460
    unset logscale
    set xrange [0.5:8.5]; set yrange [0:49.89743]
    set xtics scale 0.6 noenhanced norotate font ",14" ('1' 1, '2' 2, '4' 4, '8' 8)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40)
    set border 3; set grid noxtics ytics
    set xlabel string[7]
    set label string[8] at screen 0.05330, screen 0.47648 left font ",12" textcolor rgb ink noenhanced
    plot data using (column("series") == 0 ? column("x") : NaN):(column("lower")) with lines lw 2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("lower")) with lines lw 2 lc rgb color(1) notitle, \
         data using (column("series") == 2 ? column("x") : NaN):(column("lower")) with lines lw 2 lc rgb color(2) notitle, \
         data using (column("series") == 0 ? column("x") : NaN):(column("lower_lo")):(column("x") - (column("x"))):(column("lower_hi") - (column("lower_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(0) notitle, \
         data using (column("series") == 1 ? column("x") : NaN):(column("lower_lo")):(column("x") - (column("x"))):(column("lower_hi") - (column("lower_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(1) notitle, \
         data using (column("series") == 2 ? column("x") : NaN):(column("lower_lo")):(column("x") - (column("x"))):(column("lower_hi") - (column("lower_lo"))) with vectors heads size screen 0.003,90 lw 1.2 lc rgb color(2) notitle, \
         data using (column("series") == 0 && column("state") == 0 ? column("x") : NaN):(column("lower")) with points pt solid(0) ps 1.3*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt solid(0) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 0 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt hollow(0) ps 1.5*point lw 1.5 lc rgb color(0) notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt solid(1) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 1 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt hollow(1) ps 1.5*point lw 1.5 lc rgb color(1) notitle, \
         data using (column("series") == 2 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt solid(2) ps 1.5*point lc rgb paper notitle, \
         data using (column("series") == 2 && column("state") == 1 ? column("x") : NaN):(column("lower")) with points pt hollow(2) ps 1.5*point lw 1.5 lc rgb color(2) notitle
    unset multiplot
    set output
}
