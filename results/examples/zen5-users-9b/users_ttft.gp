# users_ttft.gp - written by bench; draw it again with: gnuplot users_ttft.gp
name = 'users_ttft'
data = 'users_ttft.csv'
title_text = 'Time to the first token, of each number of users'
subtitle_text = 'yi-1.5-9b-Q4_K_M  ·  prompts 64, answers 32 tokens  ·  AMD EPYC, 2 CPUs'
warning_text = ''
height = 689
array string[12]
string[1] = 'llama.cpp, 1 user (disturbed)'
string[2] = 'llama.cpp, 2 users (disturbed)'
string[3] = 'llama.cpp, 4 users (disturbed)'
string[4] = 'llama.cpp, 8 users (disturbed)'
string[5] = 'slmbench, 1 user (disturbed)'
string[6] = 'slmbench, 2 users (disturbed)'
string[7] = 'slmbench, 4 users (disturbed)'
string[8] = 'slmbench, 8 users (disturbed)'
string[9] = 'seconds to the first token (logarithmic)'
string[10] = 'requests whose first token came within, %'
string[11] = 'limit 5 s'

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
    set arrow from screen 0.73967, screen 0.59289 to screen 0.76133, screen 0.59289 nohead lw 2 lc rgb color(0)
    set label string[1] at screen 0.76967, screen 0.59289 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.55515 to screen 0.76133, screen 0.55515 nohead lw 2 lc rgb color(1)
    set label string[2] at screen 0.76967, screen 0.55515 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.51742 to screen 0.76133, screen 0.51742 nohead lw 2 lc rgb color(2)
    set label string[3] at screen 0.76967, screen 0.51742 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.47968 to screen 0.76133, screen 0.47968 nohead lw 2 lc rgb color(3)
    set label string[4] at screen 0.76967, screen 0.47968 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.44194 to screen 0.76133, screen 0.44194 nohead lw 2 dt (9,6) lc rgb color(0)
    set label string[5] at screen 0.76967, screen 0.44194 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.40421 to screen 0.76133, screen 0.40421 nohead lw 2 dt (9,6) lc rgb color(1)
    set label string[6] at screen 0.76967, screen 0.40421 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.36647 to screen 0.76133, screen 0.36647 nohead lw 2 dt (9,6) lc rgb color(2)
    set label string[7] at screen 0.76967, screen 0.36647 left font ",14" textcolor rgb ink noenhanced
    set arrow from screen 0.73967, screen 0.32874 to screen 0.76133, screen 0.32874 nohead lw 2 dt (9,6) lc rgb color(3)
    set label string[8] at screen 0.76967, screen 0.32874 left font ",14" textcolor rgb ink noenhanced
    set lmargin at screen 0.05170; set rmargin at screen 0.72633
    set tmargin at screen 0.81422; set bmargin at screen 0.10740
    unset logscale
    set logscale x
    set xrange [0.62271:40.449445]; set yrange [0:103]
    set xtics scale 0.6 noenhanced norotate font ",14" ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20)
    set ytics scale 0.6 noenhanced  font ",14" ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60, '70' 70, '80' 80, '90' 90, '100' 100)
    set border 3; set grid noxtics ytics
    set xlabel string[9]
    set label string[10] at screen 0.05170, screen 0.83599 left font ",12" textcolor rgb ink noenhanced
    set arrow from first 5, graph 0 to first 5, graph 1 nohead lw 1.6 dt (9,6) lc rgb bad front
    set label string[11] at first 5, graph 0.03 left offset 0.612,-0.000 rotate by 0.00 font ",12" textcolor rgb bad noenhanced front
    set arrow from graph 0, first 90 to graph 1, first 90 nohead lw 1 dt (2,5) lc rgb grey front
    plot data using (column("step") == 0 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(0) notitle, \
         data using (column("step") == 1 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(1) notitle, \
         data using (column("step") == 2 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(2) notitle, \
         data using (column("step") == 3 && column("server") == 0 ? column("seconds") : NaN):(column("percent")) with steps lw 2 lc rgb color(3) notitle, \
         data using (column("step") == 0 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(0) notitle, \
         data using (column("step") == 1 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(1) notitle, \
         data using (column("step") == 2 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(2) notitle, \
         data using (column("step") == 3 && column("server") == 1 ? column("seconds") : NaN):(column("percent")) with steps lw 2 dt (9,6) lc rgb color(3) notitle
    unset multiplot
    set output
}
