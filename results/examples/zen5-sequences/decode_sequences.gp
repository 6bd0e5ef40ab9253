# decode_sequences.gp - written by bench; draw it again with: gnuplot decode_sequences.gp
name = 'decode_sequences'
data = 'decode_sequences.csv'
title_text = 'Decode speed of all sequences together, 2 threads, context depth 512'
subtitle_text = '2 models  ·  Oxide Virtual Turin-like Processor, 2 CPUs  ·  no memory limit'
x_name = 'n_sequences'
y_name = 'tok_per_s'
other_name = 'roof_tok_per_s'
y_title = 'tokens per second'
roof_name = 'roof: bandwidth or arithmetic'
x_title = 'sequences decoded together'
n_series = 2
array series[2]
series[1] = 'tinyllama-1.1b Q4_K_M'
series[2] = 'yi-1.5-9b Q4_K_M'
n_groups = 0
x_min = 0.44
x_max = 8.56
y_min = 5
y_max = 994.223
log_y = 1
x_ticks = "1,2,4,8"
y_ticks = "'5' 5,'10' 10,'20' 20,'50' 50,'100' 100,'200' 200,'500' 500"
y_characters = 3
n_panels = 1
array panel_min[1]
array panel_max[1]
array panel_log[1]
array panel_ticks[1]
array panel_series[1]
panel_min[1] = 5
panel_max[1] = 994.223
panel_log[1] = 1
panel_ticks[1] = "'5' 5,'10' 10,'20' 20,'50' 50,'100' 100,'200' 200,'500' 500"
panel_series[1] = '0 1'
n_hollow = 0
n_crosses = 0
n_limits = 0
n_second_group = 0
n_roofs = 8
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
# decode.gp - decode speed against threads, context depth, memory limit or number of
# sequences, with its roof; and the KV cache against the number of sequences
#
# One line for each setting.

# Series that are far slower than the others have a panel of their own below.
is(i) = column("series") == i
x_if(condition) = condition ? column(x_name) : NaN
y_title_of(p) = panel_log[p] ? y_title . " (logarithmic)" : y_title

# The legend, as labels of its own: gnuplot's has as many lines as the panel that it
# belongs to has room for. Where it is too much beside the chart it stands below it.
n_entries = n_series + (n_roofs > 0) + (n_doubtful_roofs > 0) + (n_hollow > 0) + (n_crosses > 0)
array entry[n_entries]
array entry_color[n_entries]
array entry_point[n_entries]
array entry_line[n_entries]
longest = 0
do for [i=1:n_series] {
    entry[i] = series[i]
    entry_color[i] = color(i-1)
    entry_point[i] = solid(i-1)
    entry_line[i] = 1
}
at = n_series
do for [k=1:4] {
    if (int(word(sprintf("%d %d %d %d", n_roofs, n_doubtful_roofs, n_hollow, n_crosses), k)) > 0) {
        at = at + 1
        entry[at] = k == 1 ? roof_name : k == 2 ? "roof of disturbed runs" : k == 3 ? "partial or disturbed" : "no figure"
        entry_color[at] = grey
        entry_point[at] = k == 3 ? 6 : k == 4 ? 2 : -1
        entry_line[at] = k == 1 ? 2 : k == 2 ? 3 : 0
    }
}
do for [i=1:n_entries] {
    if (strlen(entry[i]) > longest) { longest = strlen(entry[i]) }
}
legend_width = 0.05 + 0.0077 * longest
is_below = legend_width > 0.36 || n_entries > 20
n_columns = !is_below || int(0.96 / legend_width) < 1 ? 1 : int(0.96 / legend_width)
n_lines = (n_entries + n_columns - 1) / n_columns
panels_height = n_panels == 1 ? 568.0 : n_panels == 2 ? 700.0 : 850.0
head = n_panels == 1 ? 128.0 : 150.0
foot = 104.0 + (is_below ? 20 + 29.0 * n_lines : 0)
height = head + panels_height + foot
eval frame
legend_left = is_below ? 0.02 : 1 - legend_width
legend_top = is_below ? 12 + 29.0 * (n_lines - 0.5) : foot + panels_height / 2 + 31.0 * (n_lines - 1) / 2
legend_x(i) = legend_left + legend_width * ((i - 1) / n_lines) + 0.013
legend_y(i) = (legend_top - (is_below ? 29.0 : 31.0) * ((i - 1) % n_lines)) / height
unset key
set rmargin at screen (is_below ? 0.97 : 0.98 - legend_width)
gap = n_panels > 1 ? 46.0 : 0.0
first_share = n_panels == 1 ? 1.0 : n_panels == 2 ? 0.6 : 0.44
share(p) = p == 1 ? first_share : (1 - first_share) / (n_panels - 1)
panel_height(p) = (panels_height - gap * (n_panels - 1)) * share(p)

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    top = height - head
    do for [i=1:n_entries] {
        if (entry_line[i] == 1) { set arrow 1000+i from screen legend_x(i) - 0.011, screen legend_y(i) to screen legend_x(i) + 0.011, screen legend_y(i) nohead lw 2 lc rgb entry_color[i] }
        if (entry_line[i] == 2) { set arrow 1000+i from screen legend_x(i) - 0.011, screen legend_y(i) to screen legend_x(i) + 0.011, screen legend_y(i) nohead lw 1.6 dt (9,6) lc rgb entry_color[i] }
        if (entry_line[i] == 3) { set arrow 1000+i from screen legend_x(i) - 0.011, screen legend_y(i) to screen legend_x(i) + 0.011, screen legend_y(i) nohead lw 1.4 dt (2,5) lc rgb entry_color[i] }
        set label 1000+i entry[i] at screen legend_x(i), screen legend_y(i) left offset 2.2,0 noenhanced textcolor rgb ink
        if (entry_point[i] > 0) { set label 2000+i "" at screen legend_x(i), screen legend_y(i) point pt entry_point[i] ps 1.4*point lw 1.5 lc rgb entry_color[i] }
    }
    do for [p=1:n_panels] {
        set tmargin at screen top / height
        set bmargin at screen (top - panel_height(p)) / height
        unset logscale y
        if (panel_log[p]) { set logscale y }
        set yrange [panel_min[p]:panel_max[p]]
        eval "set ytics (" . panel_ticks[p] . ")"
        eval "set xtics (" . x_ticks . ")"
        set format x (p == n_panels ? "%.10g" : "")
        if (p == n_panels) { set xlabel x_title textcolor rgb ink } else { unset xlabel }
        if (n_panels == 1) { set ylabel y_title_of(p) textcolor rgb ink }
        if (n_panels > 1) {
            set label 3 (p == 1 ? y_title_of(p) : y_title_of(p) . ", slower series on an axis of their own") \
                at graph 0, graph 1 offset 0, 0.8 left font ",12" textcolor rgb ink
        }
        plot \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("doubtful") == 0)):(column(other_name)) \
                with lines lw 1.6 dt (9,6) lc rgb color(int(s)) notitle, \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("doubtful") == 1)):(column(other_name)) \
                with lines lw 1.4 dt (2,5) lc rgb color(int(s)) notitle, \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("state") < 2)):(column(y_name)) \
                with lines lw 2 lc rgb color(int(s)) notitle, \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("state") == 0)):(column(y_name)):"lo":"hi" \
                with yerrorbars lw 1.2 lc rgb color(int(s)) pt solid(int(s)) ps 1.3*point notitle, \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("state") == 1)):(column(y_name)):"lo":"hi" \
                with yerrorbars lw 1.2 lc rgb color(int(s)) pt hollow(int(s)) ps 1.5*point notitle, \
            for [s in panel_series[p]] data using (x_if(is(int(s)) && column("state") == 2)):(column(y_name)) \
                with points pt 2 ps 1.4*point lw 2 lc rgb color(int(s)) notitle, \
            for [s in panel_series[p]] data using (column(x_name)):(column(y_name)):(is(int(s)) && column("state") == 2 ? strcol("note") : "") \
                with labels noenhanced left offset 1,0 font ",11" textcolor rgb color(int(s)) notitle
        unset label 1
        unset label 2
        unset label 3
        do for [i=1:n_entries] {
            unset label 1000+i
            unset label 2000+i
            unset arrow 1000+i
        }
        top = top - panel_height(p) - gap
    }
    unset multiplot
    set output
    eval frame
}
