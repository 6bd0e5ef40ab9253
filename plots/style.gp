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
