// Tables that fit their terminal.

/** A table of columns, or where it is too wide a list for each row. */
export const tableOf = (head, rows, columns = Infinity) => {
  const widths = head.map((word, index) => Math.max(word.length, ...rows.map((row) => row[index].length)));
  const line = (row) => row.map((cell, index) => cell.padEnd(widths[index])).join('  ').trimEnd();
  const title = Math.max(...head.map((word) => word.length));
  const list = (row) => row.map((cell, index) => `${head[index].padEnd(title)}  ${cell}`).join('\n');
  const fits = widths.reduce((sum, width) => sum + width + 2, -2) <= columns;
  return fits ? [head, ...rows].map(line).join('\n') : rows.map(list).join('\n\n');
};
