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
do for [i=1:n_series] { set ytics add (literal(series[i]) i-1) }
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
