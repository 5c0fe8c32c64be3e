/** Controls of plug-ins. What one of them throws or returns is checked: it costs that EXECUTE and nothing else. */
import type { Identity } from '../../../auth/permissions.ts'
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { nameProblem, VOID } from '../../../protocol/monitor/value.ts'
import {
  type Control,
  type ControlArguments,
  type ControlResult,
  type ControlRun,
  failed,
} from '../../controls/control.ts'
import { encodeResult } from '../../controls/results.ts'
import { isRefusal, MAX_DETAIL, StatusError } from '../../core/errors.ts'
import { isText, parametersProblem, valueProblem } from '../../metrics/value-problem.ts'

export const CONTROL_PREFIX = 'plugin.'
const OUTCOMES: readonly unknown[] = ['ok', 'failed'] satisfies readonly ControlResult['outcome'][]
/** With what surrounds it, the result fits a frame. */
const MAX_RESULT_BYTES = MAX_FRAME_BYTES - 4096

/** Who runs a control. */
export interface ControlCaller {
  readonly identity: Identity
  /** The address of the peer. */
  readonly address: string
}

/** A control as a plug-in writes it. */
export interface PluginControl extends Pick<Control, 'description' | 'parameters' | 'maxRunning' | 'adminOnly'> {
  /** Begins with `plugin.`. */
  readonly name: string
  /**
   * Checks the arguments and changes nothing; throws StatusError to refuse. Returns what runs the control, with a signal that is
   * aborted at the end of its time and when the server stops.
   */
  prepare(args: ControlArguments, caller: ControlCaller): ControlRun
}

export interface PluginControlHost {
  /** The only tenants that see the control; undefined for all. */
  readonly tenants: readonly string[] | undefined
  readonly timeoutMs: number
  /** Runs code of the plug-in. */
  enter<T>(act: () => T): T
  /** Settles with `working`, or rejects after the time of the plug-in. */
  inTime<T>(working: Promise<T>): Promise<T>
  failed(error: unknown): void
}

/** Throws TypeError if the declaration cannot be used. */
export function hostedControl(control: PluginControl, host: PluginControlHost): Control {
  checkDeclaration(control)
  const { name, description, parameters, maxRunning = 1, adminOnly } = control
  const { tenants, timeoutMs } = host
  const run = async (run: ControlRun, stopping: AbortSignal): Promise<ControlResult> => {
    const ending = new AbortController()
    // What its listeners throw is a fault of the plug-in.
    const abort = (reason: unknown): void => host.enter(() => ending.abort(reason))
    const stop = (): void => abort(stopping.reason)
    stopping.addEventListener('abort', stop)
    try {
      return checkedResult(await host.inTime(Promise.resolve(host.enter(() => run(ending.signal)))))
    } catch (error) {
      host.failed(error)
      abort(error)
      if (!(error instanceof TookTooLong)) return failed('the plug-in failed; the log of the server has the details')
      return { outcome: 'timeout', detail: `not ended after ${timeoutMs} ms`, value: VOID }
    } finally {
      stopping.removeEventListener('abort', stop)
    }
  }
  return {
    name,
    description,
    parameters,
    maxRunning,
    ...(tenants && { tenants }),
    ...(adminOnly && { adminOnly }),
    prepare(args, { identity, address }) {
      try {
        const prepared = host.enter(() => control.prepare(args, { identity, address }))
        if (typeof prepared !== 'function') throw new TypeError(`${name}: \`prepare\` returned no function`)
        return (stopping) => run(prepared, stopping)
      } catch (error) {
        if (isRefusal(error)) throw error
        host.failed(error)
        throw new StatusError('INTERNAL', `the plug-in of ${name} failed`)
      }
    },
  }
}

/** Something of a plug-in took longer than its `timeout`. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong'
}

function checkDeclaration({ name, description, parameters, prepare, maxRunning = 1 }: PluginControl): void {
  const says = (problem: string): TypeError => new TypeError(`control ${String(name)}: ${problem}`)
  if (typeof name !== 'string' || !name.startsWith(CONTROL_PREFIX))
    throw says(`its name has to begin with "${CONTROL_PREFIX}"`)
  const problem = nameProblem(name)
  if (problem !== undefined) throw says(problem)
  if (!isText(description)) throw says(`\`description\` is not a text of at most ${MAX_DETAIL} characters`)
  if (!(Number.isSafeInteger(maxRunning) && maxRunning > 0)) throw says('`maxRunning` is not a whole number from 1 on')
  if (typeof prepare !== 'function') throw says('`prepare` is not a function')
  const unsound = parametersProblem(parameters)
  if (unsound !== undefined) throw says(unsound)
}

/** Throws TypeError. */
function checkedResult(result: ControlResult): ControlResult {
  const { outcome, detail = '', value = VOID } = Object(result) as Partial<ControlResult>
  if (outcome === undefined || !OUTCOMES.includes(outcome))
    throw new TypeError(`no outcome is called ${String(outcome)}`)
  if (typeof detail !== 'string') throw new TypeError('`detail` is not a text')
  const problem = valueProblem(value)
  if (problem !== undefined) throw new TypeError(problem)
  const checked = { outcome, detail: detail.slice(0, MAX_DETAIL), value }
  const { length } = encodeResult(checked)
  if (length > MAX_RESULT_BYTES) throw new TypeError(`a result of ${length} bytes, of at most ${MAX_RESULT_BYTES}`)
  return checked
}
