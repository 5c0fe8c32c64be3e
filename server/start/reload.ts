/**
 * Reads the configuration again while the server runs, for SIGHUP and for the control `config.reload`. Everything is checked
 * before anything changes: a file with a problem changes nothing. The audit log has the names of the keys, never their values,
 * and is stored before anything is put in force, unless the disk is full; that happens in one step, between two events of the event loop.
 */
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type { AuditLog } from '../kernel/accounts/audit/log.ts'
import { type Control, failed, ok } from '../kernel/controls/control.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import { readRegularFile, WatchedFile } from '../kernel/core/watched-file.ts'
import { type Config, ConfigError, type ReloadableConfig } from './config.ts'

/** A file that changes within this time is still being written. */
const SETTLE_MS = 200
/** Problems that a consumer is shown; the log has all of them. */
const MAX_SHOWN = 20

/** The names of the keys that a reload concerns. */
export interface ReloadedKeys {
  /** Now in force. */
  readonly changed: readonly string[]
  /** Their values in the file differ from those in force. */
  readonly needsRestart: readonly string[]
}

export interface ReloaderOptions {
  readonly config: ReloadableConfig
  readonly clock: Pick<Clock, 'setTimeout'>
  readonly log: Logger
  readonly audit: Pick<AuditLog, 'record'>
  /** Resolves when what was recorded is stored; to false if the disk is full. */
  readonly whenStored: () => Promise<boolean>
  /** Checks a configuration and changes nothing; rejects with ConfigError. The function that it returns puts it in force, and never throws. */
  readonly prepare: (config: Config, changed: readonly string[]) => Promise<() => void>
}

export class Reloader {
  readonly #options: ReloaderOptions
  #running: Promise<unknown> = Promise.resolve()
  /** The reload that has not begun yet: it serves everybody who asks until it begins. */
  #next: Promise<ReloadedKeys> | undefined
  #isStopped = false

  constructor(options: ReloaderOptions) {
    this.#options = options
  }

  /** Rejects with ConfigError if the configuration cannot be used; then nothing has changed. One reload runs at a time. */
  reload(): Promise<ReloadedKeys> {
    if (this.#next !== undefined) return this.#next
    const next = this.#running.then(() => {
      this.#next = undefined
      return this.#reload()
    })
    this.#next = next
    this.#running = next.catch(() => {})
    return next
  }

  /** Nothing is put in force any more. */
  stop(): void {
    this.#isStopped = true
  }

  async #reload(): Promise<ReloadedKeys> {
    const { config, log, audit, whenStored } = this.#options
    const entry = { action: 'reload', address: '', object: config.file ?? '' }
    try {
      const { change, putInForce } = await this.#prepare()
      const { changed, needsRestart } = change
      const detail = sentenceOf(change)
      audit.record({ ...entry, args: { changed, needs_restart: needsRestart }, outcome: 'started', detail })
      if (!(await whenStored())) {
        log.warn({ file: config.file }, 'the disk is full: a reload is in force before it is in the audit log')
      }
      this.#checkRunning()
      config.take(change)
      putInForce()
      audit.record({ ...entry, outcome: 'ok', detail })
      log.info({ file: config.file, changed, needsRestart }, `the configuration was read again: ${detail}`)
      return { changed, needsRestart }
    } catch (error) {
      // After the stop nothing is stored any more.
      if (this.#isStopped) throw error
      if (!(error instanceof ConfigError)) {
        audit.record({ ...entry, outcome: 'failed', detail: 'the server failed; its log has the details' })
        throw error
      }
      const { problems, message } = error
      log.error({ file: config.file, problems }, 'the configuration was read again and cannot be used: nothing changes')
      audit.record({ ...entry, outcome: 'failed', detail: message })
      throw error
    }
  }

  /** Reads and checks the configuration, and changes nothing. */
  async #prepare() {
    const { config, clock, prepare } = this.#options
    const file = config.file === undefined ? undefined : new WatchedFile(config.file, '--config')
    const settled = new Promise<void>((resolve) => clock.setTimeout(resolve, SETTLE_MS))
    if (file !== undefined) await settled
    const change = config.readAgain(readFilled)
    if (file?.look()) throw problem(file.path, 'is being written: reload when it is complete')
    const putInForce = await prepare(change.inForce.config, change.changed)
    this.#checkRunning()
    return { change, putInForce }
  }

  #checkRunning(): void {
    if (this.#isStopped) throw problem(this.#options.config.file ?? '', 'is not read any more: the server stops')
  }
}

function problem(source: string, message: string): ConfigError {
  return new ConfigError([{ source, message }])
}

/** An empty file would be a configuration, but is far more likely a file that somebody has only begun to write. */
function readFilled(path: string): Uint8Array {
  const bytes = readRegularFile(path)
  if (bytes.length === 0) throw new Error('it is empty; if every key is to have its default, write a comment into it')
  return bytes
}

/** What a reload did, in words. */
export function sentenceOf({ changed, needsRestart }: ReloadedKeys): string {
  const parts = [
    changed.length > 0 && `now in force: ${changed.join(', ')}`,
    needsRestart.length > 0 && `only after a restart: ${needsRestart.join(', ')}`,
  ].filter((part) => part !== false)
  return parts.length > 0 ? parts.join('; ') : 'nothing has changed'
}

/** `reloader` is undefined if the server was not given a configuration that can be read again. */
export function configReload(reloader: Reloader | undefined): Control {
  return {
    name: 'config.reload',
    description: 'Reads the configuration again, puts in force what can be, and names what needs a restart.',
    parameters: [],
    adminOnly: true,
    prepare: () => async () => {
      if (reloader === undefined) return failed('this server was not given a configuration that can be read again')
      try {
        const keys = await reloader.reload()
        return ok(sentenceOf(keys), resultOf(keys))
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        return failed(shortened(error))
      }
    },
  }
}

/** REC {string array changed, string array needs_restart}. */
function resultOf({ changed, needsRestart }: ReloadedKeys): Value {
  const { ARRAY, REC, STRING } = BasicType
  const array = (name: string, items: readonly string[]) => ({ name, type: ARRAY, value: { element: STRING, items } })
  return { type: REC, value: [array('changed', changed), array('needs_restart', needsRestart)] }
}

function shortened({ message }: ConfigError): string {
  const lines = message.split('\n')
  const more = lines.length - MAX_SHOWN
  return more > 0 ? [...lines.slice(0, MAX_SHOWN), `and ${more} more, which are in the log`].join('\n') : message
}
