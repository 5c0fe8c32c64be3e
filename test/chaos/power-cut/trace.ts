/** What strace recorded (`-f -y -xx`): the writes, syncs and names of the database's files in one order with the history. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'

export const SYSCALLS = 'pwrite64,write,ftruncate,fdatasync,fsync,unlink,openat,rename'

export type TraceEvent =
  | { readonly kind: 'write'; readonly name: string; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'size'; readonly name: string; readonly size: number }
  | { readonly kind: 'sync'; readonly name: string }
  | { readonly kind: 'sync-names' }
  | { readonly kind: 'create'; readonly name: string }
  | { readonly kind: 'remove'; readonly name: string }
  /** A line was added to the history. */
  | { readonly kind: 'line' }

/** Why strace cannot be used here; undefined if it can. */
export function straceMissing(): string | undefined {
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'strace is missing or may not trace; install it with `apt-get install --no-install-recommends strace`'
  }
}

/** The events of a recorded file. `directory`: of the database; `history`: the file with its lines. */
export function* eventsOf(file: string, directory: string, history: string): Generator<TraceEvent> {
  for (const { line } of callsIn(file)) {
    const event = eventOf(line, directory, history)
    if (event !== undefined) yield event
  }
}

/**
 * The calls of a recorded file in the order of their ends. While another thread makes a call, strace cuts a line in two, of
 * which only the first has the file and the bytes: here it is whole again.
 */
export function* callsIn(file: string): Generator<{ readonly thread: string; readonly line: string }> {
  /** What has not returned yet, by thread. */
  const unfinished = new Map<string, string>()
  for (const line of linesOf(file)) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? []
    const cut = rest.indexOf(' <unfinished ...>')
    if (cut >= 0) {
      unfinished.set(thread, rest.slice(0, cut))
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest)
    yield { thread, line: resumed === null ? rest : `${unfinished.get(thread) ?? ''}${resumed[1]}` }
  }
}

function eventOf(line: string, directory: string, history: string): TraceEvent | undefined {
  const open = line.indexOf('(')
  const result = /= (-?\d+)[^=]*$/.exec(line.slice(-400))?.[1]
  if (open < 0 || result === undefined || Number(result) < 0) return undefined
  const call = line.slice(0, open)
  const args = line.slice(open + 1)
  if (call === 'openat' || call === 'unlink') {
    const path = bytesOf(/"([^"]*)"/.exec(args)?.[1] ?? '').toString()
    if (!path.startsWith(`${directory}/`)) return undefined
    if (call === 'unlink') return { kind: 'remove', name: basename(path) }
    return args.includes('O_CREAT') ? { kind: 'create', name: basename(path) } : undefined
  }
  const path = bytesOf(/^\d+<([^>]*)>/.exec(args)?.[1] ?? '').toString()
  if (path === history) return call === 'write' ? { kind: 'line' } : undefined
  const name = basename(path)
  const numbers = args.slice(args.lastIndexOf('"') + 1)
  switch (call) {
    case 'pwrite64': {
      const at = Number(/^, \d+, (\d+)\)/.exec(numbers)?.[1])
      const bytes = bytesOf(args.slice(args.indexOf('"') + 1, args.lastIndexOf('"')))
      if (bytes.length !== Number(result)) throw new Error(`a write of ${result} bytes was recorded as ${bytes.length}`)
      return { kind: 'write', name, at, bytes }
    }
    case 'ftruncate':
      return { kind: 'size', name, size: Number(/, (\d+)\)/.exec(args)?.[1]) }
    case 'fsync':
    case 'fdatasync':
      return path === directory ? { kind: 'sync-names' } : { kind: 'sync', name }
    default:
      throw new Error(`strace recorded ${call} on ${path}, which this rig does not know`)
  }
}

/** `\x37\x7f...` */
function bytesOf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}

/** A trace is longer than a string may be. */
function* linesOf(file: string): Generator<string> {
  const piece = Buffer.alloc(1 << 22)
  const fd = openSync(file, 'r')
  let rest = ''
  for (let read = readSync(fd, piece); read > 0; read = readSync(fd, piece)) {
    const lines = (rest + piece.toString('latin1', 0, read)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  closeSync(fd)
}
