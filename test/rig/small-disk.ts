/** A small disk of its own under a directory, which can be made full and given room again. Needs root on Linux: it is a tmpfs. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const FILL_MS = 200
const PIECE = Buffer.alloc(1 << 16, 1)

/** Whether this process may mount a small disk. */
export function canMount(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0
}

export class SmallDisk {
  readonly #directory: string
  readonly #ballast: string
  #filling: NodeJS.Timeout | undefined

  private constructor(directory: string) {
    this.#directory = directory
    this.#ballast = join(directory, 'ballast')
  }

  /** Makes the directory and mounts a disk of `mib` MiB there. */
  static mount(directory: string, mib: number): SmallDisk {
    mkdirSync(directory, { mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=0700`, 'tmpfs', directory], { stdio: 'pipe' })
    return new SmallDisk(directory)
  }

  get freeMiB(): number {
    const { bavail, bsize } = statfsSync(this.#directory)
    return Math.round((bavail * bsize) / 2 ** 20)
  }

  /** Writes to a file until the disk takes no more, after what it has of it already. */
  fill(): void {
    const file = openSync(this.#ballast, 'a')
    try {
      for (;;) writeSync(file, PIECE)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    } finally {
      closeSync(file)
    }
  }

  /** Fills it again and again, whatever is freed by others, until `free`. */
  keepFull(): void {
    this.fill()
    this.#filling = setInterval(() => this.fill(), FILL_MS)
  }

  /** Takes the file away. */
  free(): void {
    clearInterval(this.#filling)
    rmSync(this.#ballast, { force: true })
  }

  /** Nobody may use it any more. */
  unmount(): void {
    clearInterval(this.#filling)
    execFileSync('umount', [this.#directory])
  }
}
