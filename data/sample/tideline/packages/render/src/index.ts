export { renderChart } from "./chart.js";
export { renderTable } from "./table.js";
