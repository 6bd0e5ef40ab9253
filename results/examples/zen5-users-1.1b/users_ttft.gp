# users_ttft.gp - written by bench; draw it again with: gnuplot users_ttft.gp
name = 'users_ttft'
data = 'users_ttft.csv'
title_text = 'Time to the first visible token, of each number of users'
subtitle_text = 'tinyllama-1.1b-Q4_K_M  ·  prompts 128, answers 64 tokens  ·  AMD EPYC, 2 CPUs'
warning_text = ''
height = 710
array string[17]
string[1] = 'ik_llama.cpp, 1 user (disturbed)'
string[2] = 'ik_llama.cpp, 2 users'
string[3] = 'ik_llama.cpp, 4 users (disturbed)'
string[4] = 'ik_llama.cpp, 8 users (disturbed)'
string[5] = 'llama.cpp, 1 user (disturbed)'
string[6] = 'llama.cpp, 2 users (disturbed)'
string[7] = 'llama.cpp, 4 users (disturbed)'
string[8] = 'llama.cpp, 8 users (disturbed)'
string[9] = 'slmbench, 1 user (disturbed)'
string[10] = 'slmbench, 2 users (disturbed)'
string[11] = 'slmbench, 4 users (disturbed)'
string[12] = 'slmbench, 8 users (disturbed)'
string[13] = 'measured 2026-11-24 by slmbench 0.1.0 (4ebc75bd0b)'
string[14] = 'seconds to the first visible token (logarithmic)'
string[15] = 'requests whose first visible token came within, %'
string[16] = 'limit 5 s'

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
    set arrow from screen 0.75574, screen 0.67817 to screen 0.77741, screen 0.67817 nohead lw 2 lc rgb color(0)
    set label string[1] at screen 0.78574, screen 0.67817 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.64155 to screen 0.77741, screen 0.64155 nohead lw 2 lc rgb color(1)
    set label string[2] at screen 0.78574, screen 0.64155 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.60493 to screen 0.77741, screen 0.60493 nohead lw 2 lc rgb color(2)
    set label string[3] at screen 0.78574, screen 0.60493 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.56831 to screen 0.77741, screen 0.56831 nohead lw 2 lc rgb color(3)
    set label string[4] at screen 0.78574, screen 0.56831 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.53169 to screen 0.77741, screen 0.53169 nohead lw 2 dt (9,6) lc rgb color(0)
    set label string[5] at screen 0.78574, screen 0.53169 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.49507 to screen 0.77741, screen 0.49507 nohead lw 2 dt (9,6) lc rgb color(1)
    set label string[6] at screen 0.78574, screen 0.49507 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.45845 to screen 0.77741, screen 0.45845 nohead lw 2 dt (9,6) lc rgb color(2)
    set label string[7] at screen 0.78574, screen 0.45845 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.42183 to screen 0.77741, screen 0.42183 nohead lw 2 dt (9,6) lc rgb color(3)
    set label string[8] at screen 0.78574, screen 0.42183 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.38521 to screen 0.77741, screen 0.38521 nohead lw 2 dt (2,5) lc rgb color(0)
    set label string[9] at screen 0.78574, screen 0.38521 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.34859 to screen 0.77741, screen 0.34859 nohead lw 2 dt (2,5) lc rgb color(1)
    set label string[10] at screen 0.78574, screen 0.34859 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.31197 to screen 0.77741, screen 0.31197 nohead lw 2 dt (2,5) lc rgb color(2)
    set label string[11] at screen 0.78574, screen 0.31197 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.75574, screen 0.27535 to screen 0.77741, screen 0.27535 nohead lw 2 dt (2,5) lc rgb color(3)
    set label string[12] at screen 0.78574, screen 0.27535 left font ",14" textcolor rgb ink noenhanced
    set label string[13] at screen 0.02000, screen 0.02394 left font ",12" textcolor rgb '#555555' noenhanced
    set lmargin at screen 0.05330; set rmargin at screen 0.74241
    set tmargin at screen 0.81972; set bmargin at screen 0.13380
    unset logscale
    set logscale x
    set xrange [0.16943692:16.619179]; set yrange [0:103]
    set xtics scale 0.6 noenhanced norotate font ",14" ('0.2' 0.2, '0.5' 0.5, '1' 1, '2' 2, '5' 5, '10' 10)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60, '70' 70, '80' 80, '90' 90, '100' 100)
    set border 3; set grid noxtics ytics
    set xlabel string[14]
    set label string[15] at screen 0.05330, screen 0.84085 left font ",12" textcolor rgb ink noenhanced
    set arrow from first 5, graph 0 to first 5, graph 1 nohead lw 1.6 dt (9,6) lc rgb bad front
    set label string[16] at first 5, graph 0.03 left offset 0.612,-0.000 rotate by 0.00 font ",12" textcolor rgb bad noenhanced front
    set arrow from graph 0, first 90 to graph 1, first 90 nohead lw 1 dt (2,5) lc rgb grey front
    plot data using (column("step") == 0 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(0) notitle, \
         data using (column("step") == 1 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(1) notitle, \
         data using (column("step") == 2 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(2) notitle, \
         data using (column("step") == 3 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(3) notitle, \
         data using (column("step") == 0 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(0) notitle, \
         data using (column("step") == 1 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(1) notitle, \
         data using (column("step") == 2 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(2) notitle, \
         data using (column("step") == 3 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(3) notitle, \
         data using (column("step") == 0 && column("server") == 2 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (2,5) lc rgb color(0) notitle, \
         data using (column("step") == 1 && column("server") == 2 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (2,5) lc rgb color(1) notitle, \
         data using (column("step") == 2 && column("server") == 2 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (2,5) lc rgb color(2) notitle, \
         data using (column("step") == 3 && column("server") == 2 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (2,5) lc rgb color(3) notitle
    unset multiplot
    set output
}
