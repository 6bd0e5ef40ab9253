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
do for [i=1:n_series] { set ytics add (literal(series[i]) i-1) }
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
