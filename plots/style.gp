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

