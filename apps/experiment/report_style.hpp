#pragma once

namespace weft::experiment {

/// The report's style sheet; holds no character that XML would want escaped.
inline constexpr const char* kReportStyle = R"(
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1f2933; max-width: 1080px;
  margin: 32px auto; padding: 0 20px; background: #ffffff; }
h1 { font-size: 30px; margin: 0 0 4px; }
h2 { font-size: 22px; margin: 44px 0 4px; padding-top: 10px; border-top: 3px solid #0072B2; }
h3 { font-size: 16px; margin: 24px 0 6px; }
h4 { font-size: 14px; margin: 18px 0 4px; color: #374151; }
.lead { font-size: 17px; margin: 0 0 8px; }
.note, figcaption { color: #6b7280; font-size: 13px; margin: 4px 0 10px; }
nav { margin: 12px 0; }
nav a { display: inline-block; margin: 0 6px 6px 0; padding: 2px 10px; border-radius: 12px;
  background: #e6f0f8; color: #004f7c; text-decoration: none; font-size: 13px; }
figure { margin: 8px 0 4px; }
.pair { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
.pair figure { width: 500px; }
.scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { padding: 4px 8px; text-align: left; border-bottom: 1px solid #e5e7eb;
  white-space: nowrap; }
th { color: #4b5563; font-weight: 600; border-bottom: 2px solid #cbd2d9; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
tbody tr:nth-child(even) { background: #f8fafc; }
.failed td { color: #b91c1c; white-space: normal; }
pre { background: #f8fafc; border: 1px solid #e5e7eb; border-radius: 6px; padding: 12px;
  overflow-x: auto; font-size: 13px; }
details { margin: 6px 0; }
summary { cursor: pointer; }
.tick, .lane, .small { font-size: 12px; fill: #374151; }
.lane { font-size: 11.5px; }
.small { font-size: 9px; }
.axis { font-size: 12.5px; fill: #111827; font-weight: 600; }
.grid { stroke: #dfe3e8; stroke-width: 1; }
.frame { stroke: #6b7280; stroke-width: 1; }
)";

}  // namespace weft::experiment
