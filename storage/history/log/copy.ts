/**
 * A copy of the history of the node that leads, for a node that is new or was away for longer than the log reaches: fresh.db and the
 * files that it names, one after the other, over NATS. The copy knows its place in the log, and takes the place of the history of the
 * node only when it is whole and on the disk.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { abortable } from '../../replicated/asking.ts'
import { Log } from '../../replicated/log.ts'
import { PIECE_BYTES, PieceReceiver, PieceSender, type PieceSink } from '../../replicated/pieces.ts'
import { nameAside } from '../../sqlite/backup.ts'
import { openSqlite } from '../../sqlite/driver.ts'
import { syncDirectory } from '../../sqlite/generation.ts'
import { StorageError } from '../../store.ts'
import { historyFiles, namedFiles } from '../backup.ts'
import { FRESH_FILE, historyError, realDisk } from '../database.ts'
import type { History } from '../history.ts'
import { HistoryRoom, type HistorySpace, historySpaceOf } from '../history-room.ts'
import { FILE_NAMES } from '../periods.ts'
import type { HistoryLogOptions } from '../store.ts'

/** More files are in no history: a file for each day of two hundred years. */
const MAX_FILES = 100_000
/** Of those that lead, or believe so, one is asked. */
const QUEUE = 'history'

/** A file of the history, and its bytes. */
type NamedFile = readonly [name: string, bytes: number]

function subjectOf(cluster: string): string {
  return `cin.${cluster}.copy-history`
}

/** What is sent now, what is received, and what was received and is to take the place of the history. */
const sendingOf = (directory: string): string => `${directory}-sending`
const partOf = (directory: string): string => `${directory}-copying`
const wholeOf = (directory: string): string => `${directory}-copied`

/**
 * To be called before a history is opened: a copy that is whole takes its place, also if that was cut off before, and what is left of
 * others goes. The history that was there stays beside it. Throws StorageError.
 */
export function takeCopied(directory: string): void {
  try {
    rmSync(sendingOf(directory), { recursive: true, force: true })
    rmSync(partOf(directory), { recursive: true, force: true })
    const whole = wholeOf(directory)
    if (!existsSync(whole)) return
    if (isEmpty(directory)) rmSync(directory, { recursive: true, force: true })
    else renameSync(directory, nameAside(directory))
    renameSync(whole, directory)
    syncDirectory(dirname(directory))
  } catch (error) {
    throw historyError(error, directory)
  }
}

/** Whether nothing was ever recorded in a history; if that cannot be told, something was. */
function isEmpty(directory: string): boolean {
  const path = join(directory, FRESH_FILE)
  if (!existsSync(path)) return !existsSync(directory) || historyFiles(directory).length === 0
  try {
    const database = openSqlite(path, { fileMustExist: true, readonly: true })
    try {
      return database.prepare('select id from tenant limit 1').get() === undefined
    } finally {
      database.close()
    }
  } catch {
    return false
  }
}

/** The side of the node that leads. */
export class HistoryCopySender extends PieceSender {
  constructor(
    { connection }: Pick<Log, 'connection'>,
    cluster: string,
    directory: string,
    history: Pick<History, 'backUp'>,
  ) {
    super(
      connection,
      subjectOf(cluster),
      async (isCancelled) => {
        const path = join(sendingOf(directory), randomUUID())
        const bytes = await history.backUp(path, { isCancelled, isLinked: true })
        const files = historyFiles(path).map((name): NamedFile => [name, statSync(join(path, name)).size])
        const release = (): void => rmSync(path, { recursive: true, force: true })
        return { bytes, more: { files }, content: contentOf(path, files), release }
      },
      QUEUE,
    )
  }
}

async function* contentOf(path: string, files: readonly NamedFile[]): AsyncGenerator<Uint8Array> {
  for (const [name] of files) yield* createReadStream(join(path, name), { highWaterMark: PIECE_BYTES })
}

/**
 * Fetches a copy, which `takeCopied` puts in the place of the history. Returns false if no node answers. Rejects with StorageError, and
 * then there is none; FULL if the disk has no room for it beside what is left to others, before anything of it has come.
 */
export async function fetchHistory(
  where: HistoryLogOptions,
  directory: string,
  signal: AbortSignal,
  space: (directory: string) => HistorySpace = historySpaceOf,
): Promise<boolean> {
  const part = partOf(directory)
  const log = await connected(where, signal)
  try {
    rmSync(part, { recursive: true, force: true })
    mkdirSync(part, { recursive: true, mode: 0o700 })
    const files = new FilesSink(part, new HistoryRoom(dirname(directory), () => space(part)))
    const { connection } = log
    const receiver = new PieceReceiver(connection, files, () => {}, signal)
    const subject = subjectOf(where.cluster)
    if (!(await receiver.receive(connection, subject, (answer) => files.begin(answer)))) return false
    checkWhole(part)
    syncDirectory(part)
    renameSync(part, wholeOf(directory))
    syncDirectory(dirname(directory))
    return true
  } catch (error) {
    throw historyError(error, directory)
  } finally {
    rmSync(part, { recursive: true, force: true })
    await log.close()
  }
}

/** Nobody waits for a connection that is not wanted any more. */
async function connected(where: HistoryLogOptions, signal: AbortSignal): Promise<Log> {
  const connecting = Log.connect({ ...where, content: 'history' })
  try {
    return await abortable(connecting, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    void connecting.then((log) => log.close()).catch(() => {})
    throw new StorageError('IO', 'a copy of the history was given up')
  }
}

/** Every file that fresh.db names is there, and fresh.db is as it was written. Pages of files have checksums of their own. */
function checkWhole(part: string): void {
  const path = join(part, FRESH_FILE)
  const database = openSqlite(path, { fileMustExist: true, readonly: true })
  try {
    const found = database.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new StorageError('DAMAGED', `the copy ${path} is damaged (${String(found)})`)
  } finally {
    database.close()
  }
  const missing = namedFiles(realDisk, path).find((name) => !existsSync(join(part, name)))
  if (missing !== undefined) throw new StorageError('DAMAGED', `the copy ${part} has no ${missing}`)
}

/** Writes what comes into one file after the other. */
class FilesSink implements PieceSink {
  readonly #directory: string
  #files: NamedFile[] = []
  /** The file that is written, and what is left of it. */
  #file: number | undefined
  #left = 0
  readonly #room: Pick<HistoryRoom, 'checkFor'>

  constructor(directory: string, room: Pick<HistoryRoom, 'checkFor'>) {
    this.#directory = directory
    this.#room = room
  }

  /** Throws StorageError for an answer that is none, and FULL if there is no room for the files. */
  begin(answer: unknown): void {
    const { files = [], refused } = (answer ?? {}) as { readonly files?: unknown; readonly refused?: unknown }
    if (refused !== undefined) return
    if (!Array.isArray(files) || files.length > MAX_FILES || !files.every(isNamedFile))
      throw new StorageError('IO', 'the node that leads has sent a list of files that is none')
    this.#room.checkFor(files.reduce((sum, [, bytes]) => sum + bytes, 0))
    this.#files = files
  }

  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const file = this.#opened()
      const end = Math.min(bytes.length, at + this.#left)
      for (let from = at; from < end; ) from += writeSync(file, bytes, from, end - from)
      this.#left -= end - at
      at = end
    }
  }

  /** The file that has room. */
  #opened(): number {
    while (this.#file === undefined || this.#left === 0) {
      this.#end()
      const next = this.#files.shift()
      if (next === undefined) throw new StorageError('IO', 'more has come than the files have that were named')
      this.#file = openSync(join(this.#directory, next[0]), 'wx', 0o600)
      this.#left = next[1]
    }
    return this.#file
  }

  sync(): void {
    // The last files may be empty.
    while (this.#left === 0 && this.#files.length > 0) {
      this.#end()
      const [name, bytes] = this.#files.shift() as NamedFile
      this.#file = openSync(join(this.#directory, name), 'wx', 0o600)
      this.#left = bytes
    }
    if (this.#left > 0) throw new StorageError('IO', 'the files that were named have not come whole')
    this.#end()
  }

  #end(): void {
    if (this.#file === undefined) return
    fsyncSync(this.#file)
    this.close()
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

/** A name leads to no other directory. */
function isNamedFile(given: unknown): given is NamedFile {
  if (!Array.isArray(given) || given.length !== 2) return false
  const [name, bytes] = given as unknown[]
  if (typeof name !== 'string' || basename(name) !== name) return false
  return (name === FRESH_FILE || FILE_NAMES.test(name)) && Number.isSafeInteger(bytes) && Number(bytes) >= 0
}
