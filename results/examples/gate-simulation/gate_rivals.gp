# gate_rivals.gp - written by bench; draw it again with: gnuplot gate_rivals.gp
name = 'gate_rivals'
data = 'gate_rivals.csv'
title_text = 'How often each rule alarms: at equal builds, and at a slower one'
subtitle_text = '10000 comparisons a point; invented noises have 2 % of a round; the others'' rules see 80 turns of A, then 80 of B'
n_series = 6
array series[6]
series[1] = 'plain 2 %'
series[2] = 'github-action-benchmark'
series[3] = 't test'
series[4] = 'criterion'
series[5] = 'Mann-Whitney'
series[6] = 'bench gate'
n_rows = 10
array rows[10]
rows[1] = 'gaussian'
rows[2] = 'heavy-tailed'
rows[3] = 'autocorrelated'
rows[4] = 'two frequencies'
rows[5] = 'launch offsets'
rows[6] = 'steal bursts'
rows[7] = 'drift'
rows[8] = 'xeon-building'
rows[9] = 'xeon-hog'
rows[10] = 'xeon-memory'
sharp = 5
x_min = -2
x_max = 102
y_min = 9.6
y_max = -0.6
log_y = 0

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
output_svg = sprintf(\"point = 0.7; set terminal svg size 1200,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'\", height / 1.4 * 1.2)"
eval frame

set xrange [x_min:x_max]
set yrange [y_min:y_max]
if (log_y) {
    set logscale y
}
if (exists("y_ticks") && strlen(y_ticks) > 0) {
    eval "set ytics (" . y_ticks . ")"
}
# SPDX-License-Identifier: MIT
#
# gate_rivals.gp - false alarms and alarms that are due, of each rule on each machine

set xtics 0,20,100
set ytics () noenhanced
do for [i=1:n_rows] { set ytics add (rows[i] i-1) }
set grid xtics noytics lc rgb faint lw 1 lt 1
do for [i=1:n_rows-1] { set arrow i from x_min, i-0.5 to x_max, i-0.5 nohead lc rgb faint lw 1 }

# The last one is ours.
hue(i) = i == n_series - 1 ? "#000000" : color(i)

# Rules of one row stand one above the other.
spot(i) = (i - (n_series - 1) / 2.0) * 0.8 / n_series

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    set label 1 title_text
    set label 2 subtitle_text
    set lmargin at screen 0.15
    set rmargin at screen 0.435
    set format y "%s"
    set xlabel "equal builds: false alarms, %" textcolor rgb ink
    unset key
    plot for [i=0:n_series-1] data using (column("series") == i ? column("false_percent") : NaN):(column("row") + spot(i)) \
        with points pt solid(i) ps 1.5*point lc rgb hue(i) notitle
    set label 1 ""
    set label 2 ""
    set lmargin at screen 0.455
    set rmargin at screen 0.74
    set format y ""
    do for [i=1:n_rows] { set ytics add ("" i-1) }
    set xlabel sprintf("B slower by %g %%: alarms, %", sharp) textcolor rgb ink
    set key outside right center vertical Left reverse noenhanced samplen 1.6 spacing 1.35 textcolor rgb ink
    plot for [i=0:n_series-1] data using (column("series") == i ? column("seen_percent") : NaN):(column("row") + spot(i)) \
        with points pt solid(i) ps 1.5*point lc rgb hue(i) title series[i+1]
    do for [i=1:n_rows] { set ytics add (rows[i] i-1) }
    unset multiplot
    set output
}
