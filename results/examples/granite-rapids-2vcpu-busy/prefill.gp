# prefill.gp - written by bench; draw it again with: gnuplot prefill.gp
name = 'prefill'
data = 'prefill.csv'
title_text = 'Prefill speed, prompt of 64 tokens'
subtitle_text = 'yi-1.5-9b  ·  Intel(R) Xeon(R) Processor, 2 CPUs  ·  memory limit 6 GiB  ·  vm'
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
y_max = 46.9077
log_y = 0
x_ticks = "-0.2,0.2,0.8,1.2,1.8,2.2"
y_ticks = ""
n_hollow = 3
n_crosses = 0
n_limits = 0
n_second_group = 3

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
# prefill.gp - prefill speed, bars per setting and thread count

set ylabel "tokens per second" textcolor rgb ink
set xtics scale 0
set xtics ()
do for [i=1:n_series] { set xtics add (series[i] i-1) }
if ((sum [i=1:n_series] strlen(series[i])) > 60) {
    set xtics rotate by 25 right
    set bmargin at screen 0.22
}
bar = 0.8 / n_groups * 0.9
set boxwidth bar absolute

is(k) = column("group") == k
x_if(condition) = condition ? column("position") : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 0)):"tok_per_s" \
            with boxes fs solid 0.85 noborder lc rgb color(k) notitle, \
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 1)):"tok_per_s" \
            with boxes fs empty border rgb color(k) lc rgb color(k) lw 2 notitle, \
        data using (x_if(column("state") < 2)):"lo":(0):(column("hi") - column("lo")) \
            with vectors heads size screen 0.004,90 lw 1.2 lc rgb ink notitle, \
        for [i=1:(n_series * n_groups <= 16)] data using "position":"hi":(column("state") < 2 ? figure(column("tok_per_s")) : "") \
            with labels offset 0,0.7 font ",12" textcolor rgb ink notitle, \
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 2)):"tok_per_s" \
            with points pt 2 ps 1.4*point lw 2 lc rgb color(k) notitle, \
        data using "position":"tok_per_s":(column("state") == 2 ? strcol("note") : "") \
            with labels noenhanced offset 0,0.9 font ",11" textcolor rgb ink notitle, \
        for [k=0:n_groups-1] keyentry with boxes fs solid 0.85 noborder lc rgb color(k) title group[k+1], \
        for [i=1:(n_hollow > 0)] keyentry with boxes fs empty border rgb "#777777" lc rgb "#777777" lw 2 title "partial or disturbed", \
        for [i=1:(n_crosses > 0)] keyentry with points pt 2 ps 1.4*point lw 2 lc rgb "#777777" title "no figure"
    set output
}
