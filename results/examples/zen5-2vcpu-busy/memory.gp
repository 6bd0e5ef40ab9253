# memory.gp - written by bench; draw it again with: gnuplot memory.gp
name = 'memory'
data = 'memory.csv'
title_text = 'Memory that must stay resident, and its limit'
subtitle_text = 'yi-1.5-9b  ·  AMD EPYC, 2 CPUs  ·  memory limit 6 GiB'
x_name = 'position'
y_name = 'peak_gib'
n_series = 3
array series[3]
series[1] = 'Q4_0 packed'
series[2] = 'Q4_K_M packed'
series[3] = 'Q6_K mmap'
n_groups = 0
x_min = -0.6
x_max = 2.6
y_min = 0
y_max = 8.07282
log_y = 0
x_ticks = "0,1,2"
y_ticks = "'0' 0,'2' 2,'4' 4,'6' 6,'8' 8"
y_characters = 1
n_hollow = 1
n_crosses = 0
n_limits = 3
n_second_group = 0
n_roofs = 3
n_doubtful_roofs = 0
n_extra = 3

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
# memory.gp - memory per setting: what must stay resident, what was charged, what was
# planned, and the limit
#
# Bars are horizontal, so that names and notes stay readable however many there are. A bar
# has two parts: what must stay resident, and behind it, lighter, what was charged, with
# page cache that the kernel gives back when memory is short. Rows of older versions have
# the second part only.

gib_max = y_max
unit = gib_max < 2 ? 1024 : 1
unit_name = gib_max < 2 ? "MiB" : "GiB"
# As bench writes sizes: a small model may stand beside a large limit.
amount(gib) = gib >= 1 ? sprintf(gib >= 100 ? "%.0f GiB" : gib >= 10 ? "%.1f GiB" : "%.2f GiB", gib) \
    : sprintf(gib * 1024 >= 100 ? "%.0f MiB" : gib * 1024 >= 10 ? "%.1f MiB" : "%.2f MiB", gib * 1024)

longest = 0
do for [i=1:n_series] { if (strlen(series[i]) > longest) { longest = strlen(series[i]) } }
text_size = n_series <= 20 ? 13 : n_series <= 36 ? 10 : 7
text_font = sprintf(",%d", text_size)
set lmargin at screen (0.03 + longest * text_size * 0.00057 > 0.52 ? 0.52 : 0.03 + longest * text_size * 0.00057)
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.2
unset logscale y
set xrange [0:gib_max * unit * (n_hollow > 0 ? 1.6 : 1.2)]
set yrange [n_series - 0.4:-0.6]
set grid noytics xtics lc rgb faint lw 1 lt 1
set xtics autofreq scale 0.6
set xlabel unit_name offset 0, 0.5 textcolor rgb ink
set ytics scale 0 nomirror noenhanced font text_font
set ytics ()
do for [i=1:n_series] { set ytics add (series[i] i-1) }
set key at screen 0.02, screen 0.085 left top vertical maxrows 2 Left reverse samplen 1.2 font ",13"

# A column without a figure says so in letters; as a number it would make expressions
# undefined.
known(name) = strcol(name) ne "NaN"
gib(name) = known(name) ? real(strcol(name)) : 0
amount_of(name) = unit * gib(name)
larger(a, b) = a > b ? a : b
# Texts stand behind the bar and the mark of the plan, and behind the limit where that
# would cross them.
gap = 0.012 * gib_max
behind(unused) = larger(larger(gib("resident_gib"), gib("peak_gib")), gib("planned_gib")) + gap
crosses(x) = known("limit") && gib("limit") > x - gap && gib("limit") < x + 0.3 * gib_max
text_x(unused) = unit * (crosses(behind(0)) ? gib("limit") + gap : behind(0))
measured(unused) = known("resident_gib") ? gib("resident_gib") : gib("peak_gib")
charged_text(unused) = known("resident_gib") && known("peak_gib") ? ", charged " . amount(gib("peak_gib")) : ""
amount_text(unused) = measured(0) > 0 ? amount(measured(0)) . charged_text(0) : ""
text_of(unused) = amount_text(0) . (strlen(amount_text(0)) && strlen(strcol("note")) ? "  " : "") . strcol("note")

half = n_series < 3 ? 0.2 : 0.34
light(hollow) = hollow ? 0xf0c9ae : 0xb9cfe0
strong(hollow) = hollow ? 0xD55E00 : 0x0072B2
is_hollow(unused) = column("state") == 1

do for [out in "output_png output_svg"] {
    eval value(out)
    plot \
        data using (0):"position":(0):(amount_of("peak_gib")):(column("position") - half):(column("position") + half):(light(is_hollow(0))) \
            with boxxyerror fs solid 1 noborder lc rgb variable notitle, \
        data using (0):"position":(0):(amount_of("resident_gib")):(column("position") - 0.6*half):(column("position") + 0.6*half):(strong(is_hollow(0))) \
            with boxxyerror fs solid 1 noborder lc rgb variable notitle, \
        data using (column("limit") * unit):(column("position") - 0.5):(0):(1) \
            with vectors nohead lw 2.5 lc rgb ink notitle, \
        data using (column("planned_gib") * unit):"position" \
            with points pt 13 ps 1.4*point lc rgb color(4) notitle, \
        data using (text_x(0)):"position":(text_of(0)) \
            with labels noenhanced left font text_font textcolor rgb "#000000" notitle, \
        for [i=1:(n_extra > 0)] keyentry with boxes fs solid 1 noborder lc rgb color(0) title "must stay resident", \
        for [i=1:(n_hollow > 0 && n_extra > 0)] keyentry with boxes fs solid 1 noborder lc rgb color(1) title "the same, where points page or failed", \
        keyentry with boxes fs solid 1 noborder lc rgb light(0) title "charged, with page cache that can be given back", \
        keyentry with points pt 13 ps 1.4*point lc rgb color(4) title "planned", \
        for [i=1:(n_limits > 0)] keyentry with lines lw 2.5 lc rgb ink title "limit"
    set output
}
