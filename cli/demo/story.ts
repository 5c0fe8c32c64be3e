/** What the demonstration prints: lines of at most 100 columns, with the seconds since its beginning. */
import { droppedOf, type Ledger } from '../ledger.ts'
import type { Colors, Terminal } from '../terminal.ts'
import type { Count } from './count.ts'

const HEADS = ['fed', 'stored', 'handled', 'committed', 'waiting'] as const
const WIDTH = 12

export class Story {
  readonly #terminal: Pick<Terminal, 'print' | 'colors'>
  readonly #startedMs = performance.now()

  constructor(terminal: Pick<Terminal, 'print' | 'colors'>) {
    this.#terminal = terminal
  }

  get colors(): Colors {
    return this.#terminal.colors
  }

  /** Behind the time. */
  tell(text: string): Promise<void> {
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(1)
    return this.#terminal.print(`${`${seconds} s`.padStart(7)}  ${text}`)
  }

  /** Below what was told last. */
  add(text: string): Promise<void> {
    return this.#terminal.print(text && `${' '.repeat(9)}${text}`)
  }

  heads(): Promise<void> {
    return this.add(this.colors.dim(HEADS.map((head) => head.padStart(WIDTH)).join('')))
  }

  row(fed: number, { handled }: Count, ledger: Ledger): Promise<void> {
    const { accepted, unstored, committed, inFlight, queued } = ledger
    const cells = [fed, accepted - unstored, handled, committed, inFlight + queued]
    return this.tell(cells.map((cell) => formatNumber(cell).padStart(WIDTH)).join(''))
  }

  ledger(ledger: Ledger): Promise<void> {
    return this.add(`${this.colors.dim('ledger')} ${formatSum(ledger)}`)
  }
}

export function formatSum(ledger: Ledger): string {
  const { accepted, committed, inFlight, queued } = ledger
  const [sum, ...parts] = [accepted, committed, inFlight, queued, droppedOf(ledger)].map(formatNumber)
  const names = ['committed', 'in flight', 'queued', 'dropped']
  return `${sum} accepted = ${parts.map((part, at) => `${part} ${names[at]}`).join(' + ')}`
}

/** With commas, wherever this runs. */
export function formatNumber(number: number): string {
  return number.toLocaleString('en-US')
}
