/** Says what is being waited for where that takes more than a second and somebody watches. */
import type { Terminal } from './terminal.ts'

const PATIENCE_MS = 1000

export async function whileWaiting<T>(terminal: Terminal, what: string, waiting: Promise<T>): Promise<T> {
  const timer = setTimeout(() => {
    if (terminal.isWatched) terminal.note(`${what} …`)
  }, PATIENCE_MS)
  try {
    return await waiting
  } finally {
    clearTimeout(timer)
  }
}
