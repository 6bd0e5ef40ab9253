# decode_context.gp - written by bench; draw it again with: gnuplot decode_context.gp
name = 'decode_context'
data = 'decode_context.csv'
title_text = 'Decode speed by context depth, 2 threads'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB  ·  vm'
n_series = 3
array series[3]
series[1] = 'Q4_0 packed'
series[2] = 'Q4_K_M packed'
series[3] = 'Q6_K mmap'
n_groups = 0
x_min = -327.68
x_max = 4423.68
y_min = 0.02
y_max = 9.60712
log_y = 1
x_ticks = "0,4096"
y_ticks = "0.02,0.05,0.1,0.2,0.5,1,2,5"
n_hollow = 2
n_crosses = 0
n_limits = 0
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
# decode_context.gp - decode speed against context depth, and its roof dashed

set xlabel "context depth, tokens" textcolor rgb ink
set ylabel "tokens per second" . (log_y ? " (logarithmic)" : "") textcolor rgb ink
eval "set xtics (" . x_ticks . ")"

is(i) = column("series") == i
x_if(condition) = condition ? column("ctx") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [i=0:n_series-1] data using (x_if(is(i))):"roof_tok_per_s" \
            with lines lw 1.6 dt (9,6) lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") < 2)):"tok_per_s" \
            with lines lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 0)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt solid(i) ps 1.3*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 1)):"tok_per_s":"lo":"hi" \
            with yerrorbars lw 1.2 lc rgb color(i) pt hollow(i) ps 1.5*point notitle, \
        for [i=0:n_series-1] data using (x_if(is(i) && column("state") == 2)):"tok_per_s" \
            with points pt 2 ps 1.4*point lw 2 lc rgb color(i) notitle, \
        for [i=0:n_series-1] data using "ctx":"tok_per_s":(is(i) && column("state") == 2 ? strcol("note") : "") \
            with labels noenhanced left offset 1,0 font ",11" textcolor rgb color(i) notitle, \
        for [i=0:n_series-1] keyentry with linespoints lw 2 lc rgb color(i) pt solid(i) ps 1.3*point title series[i+1], \
        keyentry with lines lw 1.6 dt (9,6) lc rgb "#777777" title "roof: bandwidth / bytes", \
        for [i=1:(n_hollow > 0)] keyentry with points pt 6 ps 1.5*point lc rgb "#777777" title "partial or disturbed", \
        for [i=1:(n_crosses > 0)] keyentry with points pt 2 ps 1.4*point lw 2 lc rgb "#777777" title "no figure"
    set output
}
