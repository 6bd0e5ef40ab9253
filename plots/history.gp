# SPDX-License-Identifier: MIT
#
# history.gp - values run by run, a panel per series: medians between changes as steps,
# and every change with the commit that it came with and its size

height = 150 + 240 * n_panels
height = height < 500 ? 500 : height
output_png = sprintf("point = 1; set terminal pngcairo size 1400,%d font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'", height * 1.4)
output_svg = sprintf("point = 0.6; set terminal svg size 1000,%d dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height)

# From above downwards, in shares of the picture: head, then panels with room for their
# own line and their commits.
head = 100.0 / height
each = (1 - head) / n_panels
set label 1 at screen 0.02, 1 - 35.0 / height
set label 2 at screen 0.02, 1 - 65.0 / height
unset key
set lmargin at screen 0.08
set rmargin at screen 0.97

of(i) = column("panel") == i
y_if(condition, v) = condition ? v : NaN

do for [out in "output_png output_svg"] {
    eval value(out)
    set multiplot
    set label 1
    set label 2
    do for [i=0:n_panels-1] {
        top = 1 - head - i * each
        set tmargin at screen top - 32.0 / height
        set bmargin at screen top - each + 34.0 / height
        set xrange [-0.5:last[i+1] + 0.5]
        set yrange [lo[i+1]:hi[i+1]]
        set xtics ()
        do for [k=1:n_ticks] {
            if (strlen(tick[i * n_ticks + k]) > 0) {
                set xtics add (tick[i * n_ticks + k] tick_at[i * n_ticks + k])
            }
        }
        set label 3 titles[i+1].", ".units[i+1] at screen 0.08, top - 18.0 / height left font ",13" textcolor rgb "#000000" noenhanced
        plot \
            data using (y_if(of(i) && column("change") > 0, column("run") - 0.5)):(lo[i+1]):(0):(hi[i+1] - lo[i+1]) \
                with vectors nohead lw 1.5 dt 2 lc rgb "#999999" notitle, \
            data using (column("run") - 0.5):(y_if(of(i), column("level"))):(1):(0) \
                with vectors nohead lw 2.5 lc rgb color(5) notitle, \
            data using "run":(y_if(of(i), column("value"))) \
                with points pt 7 ps 0.8*point lc rgb color(0) notitle, \
            data using (column("run") - 0.5):(y_if(of(i), hi[i+1] - 0.08 * (hi[i+1] - lo[i+1]))):(of(i) && column("change") == 2 ? strcol("label") : "") \
                with labels noenhanced left offset 0.5,0 font ",12" textcolor rgb color(1) notitle, \
            data using (column("run") - 0.5):(y_if(of(i), hi[i+1] - 0.08 * (hi[i+1] - lo[i+1]))):(of(i) && column("change") == 1 ? strcol("label") : "") \
                with labels noenhanced left offset 0.5,0 font ",12" textcolor rgb color(2) notitle
        unset label 1
        unset label 2
        unset label 3
    }
    unset multiplot
    set label 1 title_text at screen 0.02, 1 - 35.0 / height left font ",18" textcolor rgb "#000000" noenhanced
    set label 2 subtitle_text at screen 0.02, 1 - 65.0 / height left font ",12" textcolor rgb "#555555" noenhanced
    set output
}
