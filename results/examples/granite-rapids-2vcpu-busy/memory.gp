# memory.gp - written by bench; draw it again with: gnuplot memory.gp
name = 'memory'
data = 'memory.csv'
title_text = 'Peak memory and its limit'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB  ·  vm'
n_series = 3
array series[3]
series[1] = 'Q4_0 packed'
series[2] = 'Q4_K_M packed'
series[3] = 'Q6_K mmap'
n_groups = 0
x_min = -0.6
x_max = 2.6
y_min = 0
y_max = 8.07281
log_y = 0
x_ticks = "0,1,2"
y_ticks = ""
n_hollow = 1
n_crosses = 0
n_limits = 3
n_second_group = 0

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
figure(v) = sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v)
ink = "#333333"
faint = "#d8d8d8"

set border 3 lc rgb "#777777" lw 1
set tics out nomirror scale 0.6 textcolor rgb ink
set xtics noenhanced
set grid ytics lc rgb faint lw 1 lt 1
set key outside right center vertical Left reverse noenhanced samplen 1.6 spacing 1.35 \
    textcolor rgb ink
set lmargin at screen 0.1
set tmargin at screen 0.84
set bmargin at screen 0.13
set label 1 title_text at screen 0.02, 0.945 left font ",18" textcolor rgb "#000000" noenhanced
set label 2 subtitle_text at screen 0.02, 0.893 left font ",12" textcolor rgb "#555555" noenhanced

set xrange [x_min:x_max]
set yrange [y_min:y_max]
if (log_y) {
    set logscale y
    eval "set ytics (" . y_ticks . ")"
}

# Two outputs: SVG for pages, PNG for everything else. Their point sizes differ.
output_png = "point = 1; set terminal pngcairo size 1400,800 font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'"
output_svg = "point = 0.6; set terminal svg size 1000,571 dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'"

# SPDX-License-Identifier: MIT
#
# memory.gp - peak memory charged per setting, what was planned, and the limit

set ylabel "GiB" textcolor rgb ink
set xtics scale 0
set xtics ()
do for [i=1:n_series] { set xtics add (series[i] i-1) }
if ((sum [i=1:n_series] strlen(series[i])) > 60) {
    set xtics rotate by 25 right
    set bmargin at screen 0.22
}
set boxwidth 0.5 absolute

# Figures stand within their bars; above them where a bar is lower than a line of text.
low(peak) = peak < 0.07 * y_max
figure_y(peak) = low(peak) ? peak + 0.03 * y_max : peak - 0.03 * y_max
# Notes stand left of the middle, where the mark of the planned need is.
note_y(peak) = 0.03 * y_max + (low(peak) ? peak : 0)

x_if(condition) = condition ? column("position") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (x_if(column("state") == 0)):"peak_gib" \
            with boxes fs solid 0.85 noborder lc rgb color(0) notitle, \
        data using (x_if(column("state") == 1)):"peak_gib" \
            with boxes fs solid 0.25 border rgb color(1) lc rgb color(1) lw 2 notitle, \
        data using (column("position") - 0.42):"limit":(0.84):(0) \
            with vectors nohead lw 2.5 lc rgb ink notitle, \
        data using "position":"planned_gib" \
            with points pt 13 ps 1.6*point lc rgb color(4) notitle, \
        data using "position":(figure_y(column("peak_gib"))):(column("state") < 2 ? sprintf("%.2f", column("peak_gib")) : "") \
            with labels font ",12" textcolor rgb "#000000" notitle, \
        data using (column("position") - 0.17):(note_y(column("peak_gib"))):(column("state") > 0 ? strcol("note") : "") \
            with labels noenhanced left rotate font ",11" textcolor rgb "#000000" notitle, \
        keyentry with boxes fs solid 0.85 noborder lc rgb color(0) title "peak charged", \
        for [i=1:(n_hollow > 0)] keyentry with boxes fs solid 0.25 border rgb color(1) lc rgb color(1) lw 2 title "peak, did not fit", \
        keyentry with points pt 13 ps 1.6*point lc rgb color(4) title "planned need", \
        for [i=1:(n_limits > 0)] keyentry with lines lw 2.5 lc rgb ink title "limit"
    set output
}
