/** What a demonstration prints: lines of at most 100 columns, with the seconds since the start. */
import type { GapEvent } from '../../client/index.ts'
import { type ChannelLedger, droppedCount } from '../ledger.ts'
import type { Colors, Terminal } from '../terminal.ts'

const COLUMN_WIDTH = 12

export class DemoOutput {
  readonly #terminal: Pick<Terminal, 'print' | 'colors'>
  readonly #startedMs = performance.now()

  constructor(terminal: Pick<Terminal, 'print' | 'colors'>) {
    this.#terminal = terminal
  }

  get colors(): Colors {
    return this.#terminal.colors
  }

  /** Prints a line after the time. */
  print(text: string): Promise<void> {
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(1)
    return this.#terminal.print(`${`${seconds} s`.padStart(7)}  ${text}`)
  }

  /** Prints a line without the time. */
  printBelow(text: string): Promise<void> {
    return this.#terminal.print(text && `${' '.repeat(9)}${text}`)
  }

  printHeadings(headings: readonly string[]): Promise<void> {
    return this.printBelow(this.colors.dim(toRow(headings)))
  }

  /** Prints a row without the time. */
  printCells(cells: readonly (number | string)[]): Promise<void> {
    return this.printBelow(toRow(cells))
  }

  /** Prints a row after the time. */
  printRow(cells: readonly (number | string)[]): Promise<void> {
    return this.print(toRow(cells))
  }

  /** `title`: whose ledger it is, where there are several. */
  printLedger(ledger: ChannelLedger, title = 'ledger'): Promise<void> {
    return this.printBelow(`${this.colors.dim(title)} ${formatSum(ledger)}`)
  }

  /** Reports a GAP at its place between the values. */
  reportGap({ count, reason }: GapEvent, handled: number): void {
    const last = formatThousands(handled)
    const text =
      reason === 'restart' && count === 0
        ? `after ${last} a GAP: a killed server cannot know what it had accepted but not stored`
        : `after ${last} a GAP: ${count} values were lost (${reason})`
    // If nobody reads the output, printing the next line fails.
    this.print(text).catch(() => {})
  }
}

function toRow(cells: readonly (number | string)[]): string {
  const texts = cells.map((cell) => (typeof cell === 'number' ? formatThousands(cell) : cell))
  return texts.map((text) => text.padStart(COLUMN_WIDTH)).join('')
}

export function formatSum(ledger: ChannelLedger): string {
  const { accepted, committed, inFlight, queued } = ledger
  const [sum, ...parts] = [accepted, committed, inFlight, queued, droppedCount(ledger)].map(formatThousands)
  const names = ['committed', 'in flight', 'queued', 'dropped']
  return `${sum} accepted = ${parts.map((part, at) => `${part} ${names[at]}`).join(' + ')}`
}

/** Writes commas independently of the locale. */
export function formatThousands(number: number): string {
  return number.toLocaleString('en-US')
}
