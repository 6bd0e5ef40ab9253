# prefill.gp - written by bench; draw it again with: gnuplot prefill.gp
name = 'prefill'
data = 'prefill.csv'
title_text = 'Prefill speed, prompt of 64 tokens'
subtitle_text = 'yi-1.5-9b  ·  AMD EPYC, 2 CPUs  ·  memory limit 6 GiB'
x_name = 'position'
y_name = 'tok_per_s'
x_title = 'tokens per second'
n_series = 3
array series[3]
series[1] = 'Q4_0 packed'
series[2] = 'Q4_K_M packed'
series[3] = 'Q6_K mmap'
n_groups = 2
array group[2]
group[1] = '1 thread'
group[2] = '2 threads'
x_min = -0.8
x_max = 2.8
y_min = 0
y_max = 75.0669
log_y = 0
x_ticks = "-0.2,0.2,0.8,1.2,1.8,2.2"
y_ticks = "'0' 0,'20' 20,'40' 40,'60' 60"
y_characters = 2
n_hollow = 0
n_crosses = 0
n_limits = 0
n_second_group = 3
n_roofs = 0
n_doubtful_roofs = 0

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
# bars.gp - a figure of each setting, and each number of threads or text, as bars
#
# Settings are lines, so that their names can be read whatever their length; each bar
# has its figure at its end. Bars of "speedup" are drawn beside 1 and have notes.

has_notes = y_name eq "speedup"
longest = 8
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
longest_group = 0
do for [k=1:n_groups] {
    if (strlen(group[k]) > longest_group) { longest_group = strlen(group[k]) }
}
bar_height = n_groups == 1 ? 30.0 : n_groups == 2 ? 26.0 : 21.0
row_height = (bar_height * n_groups + 14) < 36 ? 36.0 : bar_height * n_groups + 14
height = head + foot + row_height * n_series
height = height < 420 ? 420.0 : height
eval frame

# Of a row's height of 1 its bars take this.
used = bar_height * n_groups / row_height
bar = used / n_groups
y_of(s, k) = s + (k - (n_groups - 1) / 2.0) * bar
set lmargin at screen 0.03 + 0.0074 * longest
set xrange [0:(has_notes ? 1.25 : 1.06) * y_max]
set yrange [n_series-0.4:-0.6]
set ytics scale 0 noenhanced font ",13" ()
do for [i=1:n_series] { set ytics add (series[i] i-1) }
set xtics ()
eval "set xtics (" . y_ticks . ")"
set grid xtics noytics lc rgb faint lw 1 lt 1
set xlabel x_title textcolor rgb ink
if (has_notes) { set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead dt 2 lw 1.2 lc rgb ink front }

y_at(shift) = y_of(column("series"), column("group")) + shift * bar
v_if(k, state) = column("group") == k && column("state") == state ? column(y_name) : NaN
text(v) = has_notes ? sprintf("%.2f   %s", v, strcol("note")) : figure(v)
label(v) = column("state") == 2 ? strcol("note") : text(v)
label_x(v) = column("state") < 2 && column("hi") > v ? column("hi") : v
hue(k) = has_notes ? color(k) : step_color(k, n_groups)

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [k=0:n_groups-1] data using (v_if(k, 0)):(y_at(0)):(0):(v_if(k, 0)):(y_at(-0.43)):(y_at(0.43)) \
            with boxxyerror fs solid 0.85 noborder lc rgb hue(k) notitle, \
        for [k=0:n_groups-1] data using (v_if(k, 1)):(y_at(0)):(0):(v_if(k, 1)):(y_at(-0.43)):(y_at(0.43)) \
            with boxxyerror fs empty border rgb hue(k) lc rgb hue(k) lw 2 notitle, \
        data using (column("state") < 2 ? column("lo") : NaN):(y_at(0)):(column("hi") - column("lo")):(0) \
            with vectors heads size screen 0.003,90 lw 1.2 lc rgb ink notitle, \
        for [k=0:n_groups-1] data using (v_if(k, 2)):(y_at(0)) \
            with points pt 2 ps 1.1*point lw 2 lc rgb hue(k) notitle, \
        data using (label_x(column(y_name))):(y_at(0)):(label(column(y_name))) \
            with labels noenhanced left offset 0.9,0 font ",12" textcolor rgb ink notitle, \
        for [k=0:n_groups-1] keyentry with boxes fs solid 0.85 noborder lc rgb hue(k) title group[k+1], \
        for [i=1:(n_hollow > 0)] keyentry with boxes fs empty border rgb grey lc rgb grey lw 2 title "partial or disturbed", \
        for [i=1:(n_crosses > 0)] keyentry with points pt 2 ps 1.1*point lw 2 lc rgb grey title "no figure"
    set output
}
