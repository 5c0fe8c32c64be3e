/** The controls that run now: how many of them may, what they come to, and their end when the server stops. */
import { setMaxListeners } from 'node:events'
import { AuthError } from '../../../auth/errors.ts'
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlResult,
  type ControlRun,
  failed,
} from './control.ts'
import type { ControlAudit } from './control-audit.ts'
import type { Execution, Executions } from './executions.ts'
import { encodeResult, type PendingResult, type Results } from './results.ts'

/** Controls that run at the same time, for one tenant and for all together. */
const MAX_RUNNING_OF_TENANT = 128
const MAX_RUNNING = 1024
/** Dry runs of a control that a tenant may have at the same time at least, whatever `maxRunning` says: they change nothing. */
const MIN_DRY_RUNS = 8
/** The part of the places that dry runs may take: the others are for what is wanted to be done. */
const DRY_RUN_SHARE = 0.5
/** How long a stop waits for running controls; a program that ignores SIGTERM has been killed by then. */
const STOP_MS = 3_000
/** The result of a dry run of a control that can only be checked. */
export const CHECKED: ControlResult = { outcome: 'dry-run', detail: 'checked only: nothing ran', value: VOID }

/** An EXECUTE whose control starts. */
export interface StartedExecute {
  readonly control: Control
  readonly context: ControlContext
  /** Whether it is recorded in the audit log. */
  readonly isRecorded: boolean
  readonly run: ControlRun
  readonly pending: PendingResult
  readonly execution: Execution
}

export interface RunningOptions {
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly log: Logger
  readonly audit: ControlAudit
  readonly results: Results
  readonly executions: Executions
}

export class RunningControls {
  readonly #options: RunningOptions
  readonly #stopping = new AbortController()
  readonly #unfinished = new Set<Promise<void>>()
  /** By tenant, and by tenant and control. */
  readonly #running = new Map<string, number>()
  #all = 0

  constructor(options: RunningOptions) {
    this.#options = options
    // Each program that runs has a listener.
    setMaxListeners(0, this.signal)
  }

  /** Aborted when the server stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /**
   * Throws StatusError BUSY if a control may not start now. The refusals name no counts: nobody learns what others run. Admins are kept
   * out only by `maxRunning`.
   */
  needsRoom({ name, maxRunning }: Control, identity: Identity): void {
    this.#needsRoom(name, identity, maxRunning)
  }

  /** The same for its dry run, which takes no place of the control itself. */
  needsRoomForDryRun(control: Control, identity: Identity): void {
    const { maxRunning } = control
    const most = maxRunning && Math.max(maxRunning, MIN_DRY_RUNS)
    if (control.dryRun !== undefined) this.#needsRoom(dryRunName(control), identity, most, DRY_RUN_SHARE)
  }

  /** The same for what only asks elsewhere what it came to. */
  needsRoomToLearn({ name }: Control, identity: Identity): void {
    this.#needsRoom(name, identity)
  }

  #needsRoom(name: string, { tenant, role }: Identity, most = Number.POSITIVE_INFINITY, share = 1): void {
    const running = (of: string): number => this.#running.get(of) ?? 0
    if (running(`${tenant}/${name}`) >= most) {
      throw new StatusError('BUSY', `${name} is already running: try again later`)
    }
    const isFull = running(tenant) >= MAX_RUNNING_OF_TENANT * share || this.#all >= MAX_RUNNING * share
    if (isFull && role !== ADMIN_ROLE) {
      throw new StatusError('BUSY', 'too many controls are already running: try again later')
    }
  }

  /** Counts a control as running from now on. The returned function runs it to its end. */
  begin(started: StartedExecute): () => void {
    const { control, context, run } = started
    this.#count(control.name, context.identity, 1)
    return () =>
      this.#watch(
        this.#resultOf(control.name, run).then((result) => {
          this.#count(control.name, context.identity, -1)
          this.end(started, result)
        }),
      )
  }

  /** The same for its dry run, whose result `done` takes; undefined if it can only be checked. */
  beginDryRun(
    control: Control,
    args: ControlArguments,
    context: Pick<ControlContext, 'identity' | 'onBehalfOf'>,
    done: (result: ControlResult) => void,
  ): (() => void) | undefined {
    const run = control.dryRun?.(args, context)
    return run && this.#beginBeside(control, dryRunName(control), context.identity, run, done)
  }

  /** The same for what asks elsewhere for the result of a run. */
  beginToLearn(
    control: Control,
    args: ControlArguments,
    context: Pick<ControlContext, 'identity' | 'key' | 'onBehalfOf'>,
    done: (result: ControlResult) => void,
  ): (() => void) | undefined {
    const run = control.learn?.(args, context)
    return run && this.#beginBeside(control, control.name, context.identity, run, done)
  }

  #beginBeside(
    control: Control,
    name: string,
    identity: Identity,
    run: ControlRun,
    done: (result: ControlResult) => void,
  ): () => void {
    this.#count(name, identity, 1)
    return () =>
      this.#watch(
        this.#resultOf(control.name, run).then((result) => {
          this.#count(name, identity, -1)
          done(result)
        }),
      )
  }

  /** The result, its audit record and the end of its execution are one batch. */
  end({ control, context, pending, execution, isRecorded }: Omit<StartedExecute, 'run'>, result: ControlResult): void {
    const { audit, results, executions } = this.#options
    const bytes = encodeResult(result)
    if (isRecorded) audit.outcome(control.name, pending.id, result, context)
    results.deliver(pending, bytes)
    executions.end(execution, bytes)
  }

  /** An AuthError (too many passwords are being set at once) is for the consumer; any other error is a defect of the server. */
  async #resultOf(control: string, run: ControlRun): Promise<ControlResult> {
    try {
      return this.signal.aborted ? failed('the producer stopped before the control started') : await run(this.signal)
    } catch (error) {
      if (error instanceof AuthError) return failed(error.message)
      this.#options.log.error({ err: error, control }, 'a control failed')
      return failed('the producer failed; its log has the details')
    }
  }

  #count(name: string, { tenant }: Identity, more: 1 | -1): void {
    for (const of of [tenant, `${tenant}/${name}`]) {
      const running = (this.#running.get(of) ?? 0) + more
      if (running === 0) this.#running.delete(of)
      else this.#running.set(of, running)
    }
    this.#all += more
  }

  #watch(running: Promise<void>): void {
    this.#unfinished.add(running)
    void running.finally(() => this.#unfinished.delete(running))
  }

  /** Ends running controls and waits for them for a while. Those that do not end by then are `unknown` after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    if (this.#unfinished.size === 0) return
    const { clock } = this.#options
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, STOP_MS)
      void Promise.all(this.#unfinished).then(() => {
        clock.clear(timer)
        resolve()
      })
    })
  }
}

/** What a dry run counts as among what runs. */
function dryRunName({ name }: Control): string {
  return `the dry run of ${name}`
}
