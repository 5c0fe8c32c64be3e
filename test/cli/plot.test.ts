/** Lines in the terminal, dot by dot: bounded in width, with bounds, times and a legend. */
import pc from 'picocolors'
import { expect, it } from 'vitest'
import { plot } from '../../cli/plot.ts'
import { cellWidth } from '../../cli/width.ts'

const plain = pc.createColors(false)
const colored = pc.createColors(true)
const options = { columns: 40, rows: 4, from: 0, to: 60, colors: plain }
const line = (name: string, ...values: number[]) => ({
  name,
  times: values.map((_, index) => (index * 60) / Math.max(1, values.length - 1)),
  values,
})

it('draws a line from its lowest to its highest value', () => {
  expect(plot([line('up', 0, 10)], { ...options, columns: 14 }).split('\n')).toEqual([
    '10 ┤       ⢀⠤⠊',
    '   ┤     ⡠⠔⠁',
    ' 5 ┤  ⢀⠔⠊',
    ' 0 ┤⡠⠒⠁',
    '    1970-01-01T00:00:00Z 1970-01-01T00:01:00Z',
    '━ up',
  ])
})

it('leaves out what is not finite, and says so where nothing is', () => {
  const picture = plot([line('gap', 1, Number.NaN, Number.POSITIVE_INFINITY, 1)], options)
  const dots = [...picture].filter((character) => character > '\u2800' && character <= '\u28ff')
  expect(dots).toHaveLength(2)
  expect(plot([line('none', Number.NaN)], options)).toBe('nothing to draw: there is no finite value')
  expect(plot([], options)).toBe('nothing to draw: there is no finite value')
})

it.each([
  ['one value', [5, 5], '7.5'],
  ['zeros', [0, 0], '1'],
  ['the largest numbers', [-1.7e308, 1.7e308], '1.7e+308'],
])('has room around %s', (_, values, top) => {
  expect(plot([line('x', ...values)], options).split('\n')[0]).toMatch(new RegExp(`^\\s*${top.replace('+', '\\+')} ┤`))
})

it('names several lines by letters where there are no colours, and tells how many it leaves out', () => {
  const lines = Array.from({ length: 14 }, (_, index) => line(`line ${index}`, index, index))
  const rows = plot(lines, options).split('\n')
  expect(rows.slice(5, 7)).toEqual(['a line 0', 'b line 1'])
  expect(rows.at(-1)).toBe('and 2 more, which are not drawn')
  expect(rows[0]).toMatch(/┤l+$/)
  expect(plot(lines.slice(0, 2), { ...options, colors: colored })).toContain(colored.yellow('━'))
})

it.each([10, 40, 100])('is no wider than %i characters, except for the times', (columns) => {
  const name = `long{${'label="text", '.repeat(20)}}`
  const rows = plot([line(name, 1, 5, 2, 4)], { ...options, columns }).split('\n')
  for (const [index, row] of rows.entries())
    if (index !== 4) expect(cellWidth(row)).toBeLessThanOrEqual(Math.max(columns, 13))
})
