/** How figures of many runs become one, and how they are shown. */
import pc from 'picocolors'
import { formatTable } from '../../cli/output.ts'

/** Of at least one number; of an even count the greater of the two in the middle. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number
}

/** So large a share of them is at most this; of at least one number. */
export function percentile(numbers: readonly number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] as number
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

/** Rows of which the first cell is a name, and the others are numbers. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const columns = head.map((title, index) => ({
    head: title,
    align: index === 0 ? ('left' as const) : ('right' as const),
  }))
  return formatTable(columns, rows, pc.createColors(false))
}
