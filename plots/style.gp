# SPDX-License-Identifier: MIT
#
# style.gp - what all charts share: palette, marks, fonts, frame
#
# The lines above (in a sweep's directory) or bench itself set: name, data,
# title_text, subtitle_text, series[], group[], ranges, ticks, and how many hollow
# marks, crosses and limits there are.
# Names come from model files, so nothing of theirs is read as markup (noenhanced).
# Labels that are not wanted are empty texts and not NaN: a plot of labels without
# a single point ends some versions of gnuplot (5.4) with a segmentation fault.

set encoding utf8
set datafile separator comma
set datafile columnheaders

# Okabe and Ito's palette: told apart by people with any colour vision.
colors = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000"
color(i) = word(colors, 1 + int(i) % 7)
# Colours come round after seven, then with other shapes.
shape(i) = 1 + int(i + 3 * int(i / 7)) % 6
solid(i) = int(word("7 5 9 13 11 15", shape(i)))
hollow(i) = int(word("6 4 8 12 10 14", shape(i)))
# Of an ordered quantity with more steps than colours: from dark to light (viridis).
steps = "#440154 #482878 #3E4A89 #31688E #26828E #1F9E89 #35B779 #6DCD59 #A5D935"
step_color(k, n) = n <= 7 ? color(k) : word(steps, 1 + int(8.0 * k / (n - 1) + 0.5))
figure(v) = sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v)
# A tick's label is a format: "%" is written twice for one.
literal(s) = strstrt(s, "%") ? substr(s, 1, strstrt(s, "%")) . "%" . literal(substr(s, strstrt(s, "%") + 1, strlen(s))) : s
ink = "#333333"
faint = "#d8d8d8"
grey = "#777777"

set border 3 lc rgb grey lw 1
set tics out nomirror scale 0.6 textcolor rgb ink
# Without the blank that gnuplot puts before a number, labels stand at their ticks.
set format "%.10g"
set xtics noenhanced
set grid ytics lc rgb faint lw 1 lt 1
set key outside right center vertical Left reverse noenhanced samplen 1.6 spacing 1.35 \
    textcolor rgb ink
# A character of a tick's label takes 0.0072 of the width; the y title stands left of it.
set lmargin at screen (exists("y_characters") && y_characters > 4 ? 0.068 + 0.0075 * y_characters : 0.1)

# Everything has a height in pixels of the PNG (1400 wide), of which the SVG has
# 1200 / 1400 and fonts of the same share: charts with more lines than others are higher. A template that changes
# height or foot evaluates frame again.
height = 800.0
head = 128.0
foot = 104.0
frame = "set tmargin at screen 1 - head / height; \
set bmargin at screen foot / height; \
set label 1 title_text at screen 0.02, 1 - 44 / height left font ',18' textcolor rgb '#000000' noenhanced; \
set label 2 subtitle_text at screen 0.02, 1 - 86 / height left font ',12' textcolor rgb '#555555' noenhanced; \
output_png = sprintf(\"point = 1; set terminal pngcairo size 1400,%.0f font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'\", height); \
output_svg = sprintf(\"point = 0.55; set terminal svg size 1200,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'\", height / 1.4 * 1.2)"
eval frame

set xrange [x_min:x_max]
set yrange [y_min:y_max]
if (log_y) {
    set logscale y
}
if (exists("y_ticks") && strlen(y_ticks) > 0) {
    eval "set ytics (" . y_ticks . ")"
}
