# SPDX-License-Identifier: MIT
#
# speculation.gp - the speed-up of speculative decoding, bars per setting and text;
# above each bar the factor, in it the share of draft tokens accepted

set ylabel "times as fast as plain decoding" textcolor rgb ink
set arrow from graph 0, first 1 to graph 1, first 1 nohead dt 2 lw 1.2 lc rgb ink front
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
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 0)):"speedup" \
            with boxes fs solid 0.85 noborder lc rgb color(k) notitle, \
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 1)):"speedup" \
            with boxes fs empty border rgb color(k) lc rgb color(k) lw 2 notitle, \
        data using (x_if(column("state") < 2)):"lo":(0):(column("hi") - column("lo")) \
            with vectors heads size screen 0.004,90 lw 1.2 lc rgb ink notitle, \
        for [i=1:(n_series * n_groups <= 16)] data using "position":"hi":(column("state") < 2 ? sprintf("%.2f", column("speedup")) : "") \
            with labels offset 0,0.7 font ",12" textcolor rgb ink notitle, \
        for [k=0:n_groups-1] data using (x_if(is(k) && column("state") == 2)):"speedup" \
            with points pt 2 ps 1.4*point lw 2 lc rgb color(k) notitle, \
        for [i=1:(n_series * n_groups <= 16)] data using "position":(0.03 * y_max):(column("state") < 2 ? strcol("note") : "") \
            with labels noenhanced font ",11" textcolor rgb ink notitle, \
        data using "position":"speedup":(column("state") == 2 ? strcol("note") : "") \
            with labels noenhanced offset 0,0.9 font ",11" textcolor rgb ink notitle, \
        for [k=0:n_groups-1] keyentry with boxes fs solid 0.85 noborder lc rgb color(k) title group[k+1], \
        for [i=1:(n_hollow > 0)] keyentry with boxes fs empty border rgb "#777777" lc rgb "#777777" lw 2 title "partial or disturbed", \
        for [i=1:(n_crosses > 0)] keyentry with points pt 2 ps 1.4*point lw 2 lc rgb "#777777" title "no figure"
    set output
}
