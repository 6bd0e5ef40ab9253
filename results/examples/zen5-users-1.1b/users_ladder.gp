# users_ladder.gp - written by bench; draw it again with: gnuplot users_ladder.gp
name = 'users_ladder'
data = 'users_ladder.csv'
title_text = 'Throughput by number of users'
subtitle_text = 'tinyllama-1.1b-Q4_K_M  ·  prompts 128, answers 64 tokens  ·  AMD EPYC, 2 CPUs'
x_min = 0.5
x_max = 8.5
y_min = 0
y_max = 1
log_y = 0
y_ticks = ''
n_series = 3
array series[3]
series[1] = 'ik_llama.cpp'
series[2] = 'llama.cpp'
series[3] = 'slmbench'
log_x = 0
has_limits = 0
n_hollow = 11
n_little = 0
x_title = 'users'
x_ticks = '1, 2, 4, 8'
y_title_1 = 'tok/s of all users'
y_min_1 = 0
y_max_1 = 174.094
log_y_1 = 0
limits_1 = ''
limits_x_1 = ''
y_title_2 = 'tok/s of each'
y_min_2 = 0
y_max_2 = 49.8974
log_y_2 = 0
limits_2 = ''
limits_x_2 = ''
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
# SPDX-License-Identifier: MIT
#
# users.gp - two figures of each number of users, one above the other, a line for each
# server: latencies against throughput with their limits, or throughput against users

longest = 14
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
if (n_hollow > 0 && longest < 22) { longest = 22 }
if (n_little > 0 && longest < 26) { longest = 26 }
height = 950.0
eval frame
right_edge = 0.93 - 0.0077 * longest
set rmargin at screen right_edge
set key at screen right_edge + 0.015, 0.72 left top Left reverse vertical noenhanced samplen 1.6 spacing 1.35
middle_gap = 54.0
panel_height = (height - head - foot - middle_gap) / 2

is(i) = column("series") == i
x_if(condition) = condition ? column("x") : NaN
upper_or_lower(p) = p == 1 ? "upper" : "lower"
limits(p) = p == 1 ? limits_1 : limits_2
limits_x(p) = p == 1 ? limits_x_1 : limits_x_2 # where their names begin, of the width
limit_unit(p) = p == 1 ? " s" : " ms"

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    if (log_x) { set logscale x }
    if (strlen(x_ticks) > 0) { eval "set xtics (" . x_ticks . ")" }
    do for [p=1:2] {
        top = p == 1 ? height - head : foot + panel_height
        set tmargin at screen top / height
        set bmargin at screen (top - panel_height) / height
        unset logscale y
        set ytics autofreq
        y_low = p == 1 ? y_min_1 : y_min_2
        y_high = p == 1 ? y_max_1 : y_max_2
        if (p == 1 ? log_y_1 : log_y_2) {
            set logscale y
            set ytics ()
            do for [power=-5:6] { do for [part in "1 2 5"] {
                at = part * 10.0 ** power
                if (at >= y_low && at <= y_high) { set ytics add (sprintf("%.10g", at) at) }
            } }
        }
        set yrange [y_low:y_high]
        set ylabel (p == 1 ? y_title_1 : y_title_2) textcolor rgb ink
        set format x (p == 2 ? "%.10g" : "")
        if (p == 2) { set xlabel x_title textcolor rgb ink } else { unset xlabel }
        do for [k=1:words(limits(p))] {
            set arrow 100+k from graph 0, first word(limits(p), k)+0 to graph 1, first word(limits(p), k)+0 nohead dt (9,6) lw 1.6 lc rgb "#B00020"
            set label 100+k "limit " . word(limits(p), k) . limit_unit(p) at graph word(limits_x(p), k)+0, first word(limits(p), k)+0 offset 0,0.6 left font ",12" textcolor rgb "#B00020"
        }
        y = upper_or_lower(p)
        plot \
            for [s=0:n_series-1] data using (x_if(is(s))):y with lines lw 2 lc rgb color(s) notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("state") == 0)):y:y."_lo":y."_hi" \
                with yerrorbars lw 1.2 lc rgb color(s) pt solid(s) ps 1.3*point notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("state") == 1)):y:y."_lo":y."_hi" \
                with yerrorbars lw 1.2 lc rgb color(s) pt hollow(s) ps 1.5*point notitle, \
            for [s=0:n_series-1] data using (x_if(is(s) && column("little") == 1)):y \
                with points pt 6 ps 2.8*point lw 1.6 lc rgb ink notitle, \
            for [s=0:n_series-1] data using (is(s) ? column(y."_label_x") : NaN):y."_label_y":(has_limits ? strcol("n_users") : "") \
                with labels noenhanced center font ",12" textcolor rgb color(s) notitle, \
            for [s=0:(p == 1 ? n_series-1 : -1)] keyentry with linespoints lw 2 lc rgb color(s) pt solid(s) ps 1.3*point title series[s+1], \
            for [k=1:(p == 1 && n_hollow > 0)] keyentry with points pt 6 ps 1.5*point lw 1.2 lc rgb grey title "partial or disturbed", \
            for [k=1:(p == 1 && n_little > 0)] keyentry with points pt 6 ps 2.8*point lw 1.6 lc rgb ink title "Little's law does not hold"
        unset label
        unset arrow
    }
    unset multiplot
    set output
    eval frame
}
