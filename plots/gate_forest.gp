# SPDX-License-Identifier: MIT
#
# gate_forest.gp - each metric's change with its interval; the margin; the launches
#
# One line for each metric: its name on the left, its figures on the right. A verdict
# has a colour, a mark and a word.

# Heights in pixels of the PNG, of which the SVG has 1000 / 1400.
row_height = n_lines == 1 ? 92.0 : n_lines < 5 ? 66.0 : 46.0
head = 136.0
foot = 136.0
height = head + row_height * n_lines + foot
name_width = 0.0074 * longest_name + 0.03
set tmargin at screen 1 - head / height
set bmargin at screen foot / height
left_edge = name_width < 0.12 ? 0.12 : name_width
set lmargin at screen left_edge
set rmargin at screen 0.62
set label 1 title_text at screen 0.02, 1 - 36 / height
set label 2 subtitle_text at screen 0.02, 1 - 74 / height

good = "#009E73"
bad = "#D55E00"
undecided = "#8A6A00"
dot = "#90555555"
verdict_color(v) = int(v) == 1 ? good : int(v) == 2 ? bad : undecided
verdict_number(v) = int(v) == 1 ? 0x009E73 : int(v) == 2 ? 0xD55E00 : 0x8A6A00

set border 1
unset ytics
set grid noytics
# A figure below the axis takes 0.05 of the picture's width: 1, 2 or 5 times a power of 10
# from one to the next, so that they do not touch.
raw_step = (x_max - x_min) * 0.05 / (0.62 - left_edge)
magnitude = 10.0 ** floor(log10(raw_step))
step = (raw_step <= magnitude ? 1 : raw_step <= 2 * magnitude ? 2 : raw_step <= 5 * magnitude ? 5 : 10) * magnitude
set xtics step nomirror font ",13"
set format x "%+g %%"
set xtics add ("0" 0)
set xlabel "change of B against A (left of 0: B is worse)" font ",13" textcolor rgb ink
unset key

# Beyond its margin a line's ground is tinted; every other line has a faint band.
do for [i=1:n_lines-1:2] {
    set object 10+i rectangle from graph 0, first i-0.5 to graph 1, first i+0.5 fc rgb "#000000" fs transparent solid 0.03 noborder behind
}
do for [i=1:n_lines] {
    if (margins[i] > x_min) {
        set object 100+i rectangle from first x_min, first i-1.5 to first margins[i], first i-0.5 fc rgb bad fs transparent solid 0.1 noborder behind
        set arrow 100+i from first margins[i], first i-1.5 to first margins[i], first i-0.5 nohead lw 1.4 dt (6,5) lc rgb bad back
    }
}
set arrow 2 from first 0, graph 0 to first 0, graph 1 nohead lw 1.2 lc rgb "#777777" back

# Texts are labels, not data: gnuplot would cut data at a comma.
set label 4 "change" at screen 0.694, graph 1 offset 0, 0.7 right font ",11" textcolor rgb "#777777" noenhanced
set label 5 "95 % interval" at screen 0.71, graph 1 offset 0, 0.7 left font ",11" textcolor rgb "#777777" noenhanced
set label 6 "margin" at screen 0.885, graph 1 offset 0, 0.7 right font ",11" textcolor rgb bad noenhanced
set label 7 "verdict" at screen 0.905, graph 1 offset 0, 0.7 left font ",11" textcolor rgb "#777777" noenhanced
do for [i=1:n_lines] {
    set label 100+i metrics[i] at graph 0, first i-1 right offset -1.2, 0 font ",13" textcolor rgb ink noenhanced
    set label 200+i changes[i] at screen 0.694, first i-1 right font ",13" textcolor rgb "#000000" noenhanced
    set label 300+i intervals[i] at screen 0.71, first i-1 left font ",13" textcolor rgb "#555555" noenhanced
    set label 400+i sprintf("%+g %%", margins[i]) at screen 0.885, first i-1 right font ",13" textcolor rgb "#555555" noenhanced
    set label 500+i words[i] at screen 0.905, first i-1 left font ",13" textcolor rgb verdict_color(verdicts[i]) noenhanced
}

of_kind(k) = column("kind") == k ? column("percent") : NaN
of_verdict(v) = column("kind") == 0 && column("verdict") == v ? column("percent") : NaN

output_png = sprintf("point = 1; set terminal pngcairo size 1400,%.0f font 'DejaVu Sans,15' lw 1.6 noenhanced; set output name.'.png'", height)
output_svg = sprintf("point = 0.6; set terminal svg size 1000,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,14' lw 1.2 noenhanced background '#ffffff'; set output name.'.svg'", height / 1.4)

# What the marks mean, in one line at the bottom: gnuplot's own keys take several.
array key_text[5] = ["pass", "fail", "inconclusive", dot_text, beyond_text]
array key_shown[5] = [n_pass, n_fail, n_unclear, n_dots, n_beyond]
array key_type[5] = [7, 13, 6, 7, 2]
array key_size[5] = [1.9, 2.5, 1.9, 0.8, 0.8]
array key_color[5] = [good, bad, undecided, dot, "#555555"]

do for [out in "output_png output_svg"] {
    eval value(out)
    key_at = 0.03
    do for [i=1:5] {
        if (key_shown[i] > 0) {
            set label 600+i key_text[i] at screen key_at, screen 28 / height left offset 1.2, 0 font ",12" \
                textcolor rgb "#555555" noenhanced point pt key_type[i] ps key_size[i]*point lw 2 lc rgb key_color[i]
            key_at = key_at + 0.0064 * strlen(key_text[i]) + 0.045
        }
    }
    plot \
        data using (of_kind(1)):"y" with points pt 7 ps 0.6*point lc rgb dot notitle, \
        data using (of_kind(2)):"y" with points pt 2 ps 0.8*point lc rgb "#555555" notitle, \
        data using (of_kind(0)):"y":"lo":"hi":(verdict_number(column("verdict"))) \
            with xerrorbars pt -1 lw 2.6 lc rgb variable notitle, \
        data using (of_verdict(1)):"y" with points pt 7 ps 1.9*point lc rgb good notitle, \
        data using (of_verdict(2)):"y" with points pt 13 ps 2.5*point lc rgb bad notitle, \
        data using (of_verdict(3)):"y" with points pt 7 ps 1.9*point lc rgb "#ffffff" notitle, \
        data using (of_verdict(3)):"y" with points pt 6 ps 1.9*point lw 2 lc rgb undecided notitle
    set output
}
