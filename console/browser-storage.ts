/**
 * What this browser keeps for the console: short texts under names. Its storage may be switched off, even the access to it, or full;
 * the console works without it.
 */
export class BrowserStorage {
  readonly #open: () => Pick<Storage, 'getItem' | 'setItem'>

  constructor(open: () => Pick<Storage, 'getItem' | 'setItem'> = () => localStorage) {
    this.#open = open
  }

  /** Empty if nothing is kept under this name. */
  read(name: string): string {
    try {
      return this.#open().getItem(name) ?? ''
    } catch {
      return ''
    }
  }

  /** Returns whether it is kept. */
  write(name: string, text: string): boolean {
    try {
      this.#open().setItem(name, text)
      return true
    } catch {
      return false
    }
  }
}
