# SPDX-License-Identifier: MIT
#
# history.gp - values run by run, a panel per series: medians between changes as steps,
# and every change with the commit that it came with and its size

head = 142.0
height = head + 20 + 336.0 * n_panels
height = height < 620 ? 620.0 : height
eval frame
each = (height - head) / n_panels
unset key
set lmargin at screen 0.08
set rmargin at screen 0.97

of(i) = column("panel") == i
y_if(condition, v) = condition ? v : NaN
range(i) = hi[i+1] - lo[i+1]
# Labels of neighbouring changes stand on two lines, those of the right half left of
# their change.
label_y(i) = y_if(of(i), hi[i+1] - (0.06 + 0.09 * (int(column("nth")) % 2)) * range(i))
on_left(i) = column("run") > 0.6 * last[i+1]
text(i, kind, left) = of(i) && column("change") == kind && on_left(i) == left ? strcol("label") : ""

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    # What the marks mean.
    at = 1 - 118 / height
    set label 10 "" at screen 0.03, at point pt 7 ps 0.8*point lc rgb color(0)
    set label 11 "a run" at screen 0.04, at left font ",12" textcolor rgb "#555555"
    set arrow 12 from screen 0.11, at to screen 0.13, at nohead lw 2.5 lc rgb color(5)
    set label 12 "median between changes" at screen 0.138, at left font ",12" textcolor rgb "#555555"
    if (n_changes > 0) {
        set arrow 13 from screen 0.333, at - 9 / height to screen 0.333, at + 9 / height nohead lw 1.5 lc rgb "#999999"
        set label 13 "a change, with its commit:" at screen 0.341, at left font ",12" textcolor rgb "#555555"
        set label 14 "worse" at screen 0.518, at left font ",12" textcolor rgb color(1)
        set label 15 "better" at screen 0.566, at left font ",12" textcolor rgb color(2)
    }
    do for [i=0:n_panels-1] {
        top = height - head - i * each
        set tmargin at screen (top - 44) / height
        set bmargin at screen (top - each + 48) / height
        set xrange [-0.5:last[i+1] + 0.5]
        set yrange [lo[i+1]:hi[i+1]]
        set xtics ()
        do for [k=1:n_ticks] {
            if (strlen(tick[i * n_ticks + k]) > 0) {
                set xtics add (literal(tick[i * n_ticks + k]) tick_at[i * n_ticks + k])
            }
        }
        # An axis that does not begin at 0 is broken at its foot.
        set label 3 titles[i+1].", ".units[i+1].(lo[i+1] > 0 ? sprintf("   (the axis begins at %.4g)", lo[i+1]) : "") \
            at screen 0.08, (top - 24) / height left font ",13" textcolor rgb "#000000" noenhanced
        if (lo[i+1] > 0) {
            set object 1 rectangle center graph 0, graph 0.05 size screen 0.02, screen 9 / height fc rgb "#ffffff" fs solid noborder front
            set label 4 "/" at graph 0, graph 0.05 center rotate by -45 offset 0,-0.35 font ",13" textcolor rgb grey front
            set label 5 "/" at graph 0, graph 0.05 center rotate by -45 offset 0,0.25 font ",13" textcolor rgb grey front
        }
        plot \
            data using (y_if(of(i) && column("change") > 0, column("run") - 0.5)):(lo[i+1]):(0):(range(i)) \
                with vectors nohead lw 1.5 dt 2 lc rgb "#999999" notitle, \
            data using (column("run") - 0.5):(y_if(of(i), column("level"))):(1):(0) \
                with vectors nohead lw 2.5 lc rgb color(5) notitle, \
            data using "run":(y_if(of(i), column("value"))) \
                with points pt 7 ps 0.8*point lc rgb color(0) notitle, \
            for [kind=1:2] data using (column("run") - 0.5):(label_y(i)):(text(i, kind, 0)) \
                with labels noenhanced left offset 0.5,0 font ",12" textcolor rgb color(3-kind) notitle, \
            for [kind=1:2] data using (column("run") - 0.5):(label_y(i)):(text(i, kind, 1)) \
                with labels noenhanced right offset -0.5,0 font ",12" textcolor rgb color(3-kind) notitle
        do for [k in "1 2 3 4 5 10 11 12 13 14 15"] { unset label int(k) }
        unset arrow 12
        unset arrow 13
        unset object 1
    }
    unset multiplot
    set output
    eval frame
}
