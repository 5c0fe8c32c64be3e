/**
 * What the disks of the nats-servers would have after a power cut: a nats-server of this version syncs what it has acknowledged
 * within two minutes only, so its store may be as it was some time before. Copies are made while it runs and writes, so a copy is
 * not of one moment, as little as a disk is.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from '../../rig/patience.ts'
import type { NatsServers } from '../../support/nats.ts'

const EVERY_MS = 2_000
/** How old the state is that comes back. */
const AGE_MS = 10_000

interface Copy {
  readonly at: number
  readonly path: string
}

export class StoreCopies {
  readonly #nats: NatsServers
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-copies-'))
  readonly #stopping = new AbortController()
  /** Of each server, the oldest first. */
  readonly #copies: Copy[][]
  #making: Promise<void> = Promise.resolve()
  #made = 0

  constructor(nats: NatsServers) {
    this.#nats = nats
    this.#copies = nats.urls.map(() => [])
    void this.#run()
  }

  /** Resolves when every server has a copy that is old enough. */
  async ready(): Promise<void> {
    await until('each store has an old copy', () => this.#copies.every((copies) => isOld(copies[0])), { looks: 6_000 })
  }

  /** The store of a server that does not run is as it was 10 s before, or longer. Newer copies are of what has never been. */
  async putBack(index: number): Promise<void> {
    await this.#making
    const copies = this.#copies[index] ?? []
    const old = copies.filter(isOld).at(-1)
    if (old === undefined) throw new Error(`there is no copy of the store of nats-server ${index}`)
    for (const { path } of copies.splice(copies.indexOf(old) + 1)) rmSync(path, { recursive: true, force: true })
    const store = this.#nats.storeDirectory(index)
    rmSync(store, { recursive: true, force: true })
    cpSync(old.path, store, { recursive: true, preserveTimestamps: true })
  }

  /** No more copies are made. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#making
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      this.#making = Promise.all(this.#copies.map((_, index) => this.#make(index))).then(() => {})
      await this.#making
      await delay(EVERY_MS, undefined, { signal }).catch(() => {})
    }
  }

  async #make(index: number): Promise<void> {
    const store = this.#nats.storeDirectory(index)
    const copies = this.#copies[index] ?? []
    if (!existsSync(store)) return
    const copy = { at: performance.now(), path: join(this.#directory, `${index}-${++this.#made}`) }
    // A file may go away while it is copied.
    await promisify(execFile)('cp', ['-a', store, copy.path]).catch(() => {})
    copies.push(copy)
    const past = copies.filter(isOld).slice(0, -1)
    for (const { path } of past) rmSync(path, { recursive: true, force: true })
    copies.splice(0, past.length)
  }
}

function isOld(copy: Copy | undefined): boolean {
  return copy !== undefined && performance.now() - copy.at >= AGE_MS
}
