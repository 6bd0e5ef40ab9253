# token_run.gp - written by bench; draw it again with: gnuplot token_run.gp
name = 'token_run'
data = 'token_run.csv'
title_text = 'The run: token times, and what disturbed them'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB'
x_min = 0
x_max = 14.9646
y_min = 0.483474
y_max = 2.06836
log_y = 0
y_ticks = ''
most_taken = 55.176
most_faults = 421431
n_series = 3
array series[3]
series[1] = 'Q4_0 packed'
series[2] = 'Q4_K_M packed'
series[3] = 'Q6_K mmap'
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
# token_run.gp - token times over the run, relative to the median of their point, and
# below them the CPU time that others took and the page faults, launch by launch

longest = 0
do for [i=1:n_series] {
    if (strlen(series[i]) > longest) { longest = strlen(series[i]) }
}
legend_width = 0.04 + 0.0077 * (longest < 15 ? 15 : longest)
n_columns = int(0.94 / legend_width) < 1 ? 1 : int(0.94 / legend_width)
n_lines = (n_series + 2 + n_columns - 1) / n_columns
head = 150.0
foot = 104.0 + 29.0 * n_lines
first = 420.0
lane = 120.0
gap = 44.0
height = head + first + 2 * (gap + lane) + foot
eval frame
unset key
set lmargin at screen 0.09
set rmargin at screen 0.97
y_bottom = y_min
y_top = y_max
is(i) = column("kind") == 0 && column("series") == i
x_if(condition) = condition ? column("minutes") : NaN
left(i) = 0.02 + legend_width * ((i - 1) % n_columns)
level(i) = (12 + 29.0 * (n_lines - 0.5 - (i - 1) / n_columns)) / height
decade(v) = 10 ** floor(log10(v))
tick_step(v) = v >= 3.5 * decade(v) ? 5 * decade(v) : v >= 1.5 * decade(v) ? 2 * decade(v) : decade(v)
taken = "#b42318"
others = "#b87a1b"

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    do for [i=1:n_series] {
        set label 1000+i "" at screen left(i), screen level(i) point pt 7 ps 1.2*point lc rgb color(i-1)
        set label 2000+i series[i] at screen left(i) + 0.012, screen level(i) left noenhanced textcolor rgb ink
    }
    do for [i=1:2] {
        set label 3000+i "" at screen left(n_series + i), screen level(n_series + i) point pt 5 ps 1.2*point lc rgb (i == 1 ? taken : others)
        who = i == 1 ? "CPU time stolen" : "of others"
        set label 4000+i who at screen left(n_series + i) + 0.012, screen level(n_series + i) left textcolor rgb ink
    }
    top = height - head
    set tmargin at screen top / height
    set bmargin at screen (top - first) / height
    set yrange [y_bottom:y_top]
    set logscale y 2
    set ytics (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16)
    set format x ""
    set label 3 "time of a token, pass or run, relative to the median of its point (logarithmic)" at graph 0, graph 1 offset 0,0.8 left font ",12" textcolor rgb ink
    plot 1 with lines lw 1 lc rgb grey notitle, \
        for [i=0:n_series-1] data using (x_if(is(i))):"relative" with points pt 7 ps 0.5*point lc rgb color(i) notitle
    do for [i=1:n_series] { unset label 1000+i; unset label 2000+i }
    do for [i=1:2] { unset label 3000+i; unset label 4000+i }
    unset label 1
    unset label 2
    unset logscale y
    do for [panel=1:2] {
        top = top - (panel == 1 ? first : lane) - gap
        set tmargin at screen top / height
        set bmargin at screen (top - lane) / height
        set yrange [0:(panel == 1 ? most_taken : most_faults)]
        step = tick_step((panel == 1 ? most_taken : most_faults) / 2.2)
        set ytics step
        set format y "%.10g"
        what = panel == 1 ? "CPU time that others took, %" : "page faults and refaults per token"
        set label 3 what at graph 0, graph 1 offset 0,0.8 left font ",12" textcolor rgb ink
        if (panel == 2) { set format x "%.10g"; set xlabel "minutes since the run began" textcolor rgb ink }
        plot \
            data using (x_if(column("kind") == 1)):(0):"minutes":"end":(0):(panel == 1 ? column("others") + column("steal") : column("faults")) \
                with boxxyerror fs solid noborder lc rgb (panel == 1 ? others : grey) notitle, \
            data using (x_if(column("kind") == 1 && panel == 1)):(0):"minutes":"end":(0):"steal" \
                with boxxyerror fs solid noborder lc rgb taken notitle
    }
    unset label 3
    unset xlabel
    set format y "%.10g"
    unset multiplot
    set output
    eval frame
}
