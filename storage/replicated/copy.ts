/**
 * A copy of the leader's database, for a node that is new, too far behind the log, or has a damaged one: the leader makes a backup
 * and sends it over NATS in pieces, a few ahead of the receiver, which lays it where its own database was, and sets that one aside.
 * The copy knows its place in the log, so following begins there.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, createReadStream, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { NatsConnection } from '@nats-io/transport-node'
import { backUp } from '../sqlite/backup.ts'
import { takeLock } from '../sqlite/database.ts'
import { openSqlite } from '../sqlite/driver.ts'
import { storageError } from '../sqlite/errors.ts'
import { syncDirectory } from '../sqlite/generation.ts'
import { LogPlaces } from '../sqlite/log-places.ts'
import type { PostMessage, StorageService } from '../sqlite/service.ts'
import { DATABASE_FILE, StorageError } from '../store.ts'
import { Log } from './log.ts'
import { PIECE_BYTES, PieceReceiver, PieceSender, type PieceSink } from './pieces.ts'
import type { LogPlace } from './place.ts'
import type { Copied, CopyProgress, FromRole, RoleOptions, ToRole } from './role.ts'
import { setAside } from './set-aside.ts'

/** The directory in the data directory where backups are made to be sent. */
const COPIES = 'copies'
function subjectOf(cluster: string, node: string): string {
  return `cin.${cluster}.copy.${node}`
}

/** Removes what a node was sending whose lead has ended, or whose process was killed. */
export function removeCopies(directory: string): void {
  rmSync(join(directory, COPIES), { recursive: true, force: true })
}

export interface CopySource {
  readonly connection: NatsConnection
  readonly cluster: string
  /** The node that leads. */
  readonly node: string
  readonly directory: string
}

/** The leader's side: sends copies to nodes that ask for one, one after the other. */
export class CopySender extends PieceSender {
  constructor({ connection, cluster, node, directory }: CopySource, service: StorageService) {
    removeCopies(directory)
    super(connection, subjectOf(cluster, node), async (isCancelled) => {
      const path = join(directory, COPIES, randomUUID())
      const release = (): void => rmSync(path, { force: true })
      try {
        const bytes = await backUp(service.opened.database, path, { progress() {}, isCancelled })
        return { bytes, content: createReadStream(path, { highWaterMark: PIECE_BYTES }), release }
      } catch (error) {
        release()
        throw storageError(error, path)
      }
    })
  }
}

/** The role of a node that needs a copy: posts how far it has come, and its place. Rejects with StorageError. */
export async function fetchCopy(
  port: MessagePort,
  { store: { directory }, log: where, wall, from = '' }: RoleOptions,
  post: PostMessage<FromRole>,
): Promise<void> {
  const stopping = new AbortController()
  port.on('message', (message: ToRole) => {
    if (message.type === 'close') stopping.abort()
  })
  const log = await Log.connect(where)
  try {
    const { connection } = log
    const source = { connection, cluster: where.cluster, node: from, directory }
    const progress = (progress: CopyProgress): void => post({ type: 'received', progress })
    const copied = await receiveCopy(source, wall, progress, stopping.signal)
    post({ type: 'fetched', copied })
  } finally {
    await log.close()
  }
}

/**
 * Asks the leader for a copy and puts it where the database of this directory has to be. The one that is there, which nothing may
 * have open, is set aside when the copy is whole: until then it may be the best that is left. Rejects with StorageError, and then
 * the directory is as it was.
 */
export async function receiveCopy(
  { connection, cluster, node, directory }: CopySource,
  wallMs: number,
  progress: (progress: CopyProgress) => void,
  signal: AbortSignal,
): Promise<Copied> {
  const lock = takeLock(directory)
  const path = join(directory, DATABASE_FILE)
  const part = `${path}.copying`
  try {
    const receiver = new PieceReceiver(connection, fileSink(part), progress, signal)
    if (!(await receiver.receive(connection, subjectOf(cluster, node))))
      throw new StorageError('IO', `the node ${node} does not answer, or leads no more`)
    const place = placeOf(part)
    const aside = setAside(directory, wallMs)
    renameSync(part, path)
    syncDirectory(directory)
    return { place, aside }
  } catch (error) {
    throw storageError(error, path)
  } finally {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${part}${end}`, { force: true })
    lock.close()
  }
}

function fileSink(path: string): PieceSink {
  rmSync(path, { force: true })
  const file = openSync(path, 'wx', 0o600)
  return { write: (bytes) => writeSync(file, bytes), sync: () => fsyncSync(file), close: () => closeSync(file) }
}

/** Checks the copy as a whole. */
function placeOf(path: string): LogPlace {
  const database = openSqlite(path, { fileMustExist: true })
  try {
    const found = database.pragma('quick_check(1)', { simple: true })
    const { place } = new LogPlaces(database)
    if (found !== 'ok') throw new StorageError('DAMAGED', `the copy ${path} is damaged (${String(found)})`)
    if (place.log === 0) throw new StorageError('FOREIGN', `the copy ${path} is part of no log`)
    return place
  } finally {
    database.close()
  }
}
