/** Controls of plug-ins. What one of them throws or returns is checked: it costs that EXECUTE and nothing else. */
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem, type Value, VOID } from '../../../protocol/monitor/value.ts'
import {
  type Control,
  type ControlArguments,
  type ControlParameter,
  type ControlResult,
  type ControlRun,
  encodeResult,
  failed,
  reservedParameters,
  WholePattern,
} from '../../kit/controls.ts'
import { type Identity, isText, parametersProblem, valueProblem } from '../../kit/metrics.ts'
import { isRefusal, MAX_DETAIL, StatusError } from '../../kit/running.ts'

export const CONTROL_PREFIX = 'plugin.'
const OUTCOMES: readonly unknown[] = ['ok', 'failed'] satisfies readonly ControlResult['outcome'][]
/** With what surrounds it, the result fits a frame. */
const MAX_RESULT_BYTES = MAX_FRAME_BYTES - 4096

/** With this bound, the list of controls has room for many. */
const MAX_BOUNDS_BYTES = 65_536
const { REC, ARRAY } = BasicType

/** Who runs a control. */
export interface ControlCaller {
  readonly identity: Identity
  /** The address of the peer. */
  readonly address: string
}

/** A parameter as a plug-in writes it: `pattern` is a regular expression of RE2. */
export type PluginParameter = Omit<ControlParameter, 'pattern'> & { readonly pattern?: string }

/** A control as a plug-in writes it. */
export interface PluginControl extends Pick<Control, 'description' | 'maxRunning' | 'adminOnly'> {
  /** Begins with `plugin.`. */
  readonly name: string
  readonly parameters: readonly PluginParameter[]
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
  const { name, description, maxRunning = 1, adminOnly } = control
  const parameters = control.parameters.map((parameter) => declaredParameter(name, parameter))
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

function declaredParameter(control: string, { pattern, ...parameter }: PluginParameter): ControlParameter {
  if (pattern === undefined) return parameter
  try {
    return { ...parameter, pattern: new WholePattern(pattern) }
  } catch (error) {
    throw new TypeError(`control ${control}: the pattern of ${parameter.name} cannot be used: ${String(error)}`)
  }
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
  for (const parameter of parameters as readonly PluginParameter[]) {
    if (reservedParameters.includes(parameter.name)) throw says(`no parameter can be called ${parameter.name}`)
    const wrong = boundProblem(parameter)
    if (wrong !== undefined) throw says(`parameter ${parameter.name}: ${wrong}`)
  }
  const bytes = boundsBytes(parameters)
  if (bytes > MAX_BOUNDS_BYTES)
    throw says(`\`pattern\`, \`values\` and \`default\` have ${bytes} bytes; there may be ${MAX_BOUNDS_BYTES}`)
}

/** `producer.controls` shows them. */
function boundProblem({ type, min, max, maxLength = 0, pattern = '', values = [], ...rest }: PluginParameter) {
  const isNumber = (bound: unknown): boolean => bound === undefined || ['number', 'bigint'].includes(typeof bound)
  if (!isNumber(min) || !isNumber(max)) return '`min` and `max` are numbers'
  if (!(Number.isSafeInteger(maxLength) && maxLength >= 0 && maxLength <= MAX_FRAME_BYTES))
    return '`maxLength` is a number of bytes'
  if (typeof pattern !== 'string') return '`pattern` is a text'
  if (!Array.isArray(values) || !values.every((text) => typeof text === 'string' && !/\p{Cc}/u.test(text)))
    return '`values` is a list of texts without control characters'
  if (rest.default === undefined) return undefined
  // Within the list it would be nested too deep for those that read it.
  if (type === REC || type === ARRAY) return 'a REC or an ARRAY has no `default`'
  const problem = valueProblem({ type, value: rest.default } as Value)
  return problem === undefined ? undefined : `\`default\`: ${problem}`
}

/** The bytes of what `producer.controls` shows of the parameters, and nothing else bounds. */
function boundsBytes(parameters: readonly PluginParameter[]): number {
  const texts = parameters.flatMap(({ pattern = '', values = [], default: byDefault }) => [
    pattern,
    ...values,
    byDefault,
  ])
  const sizes = texts.map((text) =>
    text instanceof Uint8Array ? text.length : Buffer.byteLength(String(text ?? '')) + 1,
  )
  return sizes.reduce((sum, size) => sum + size, 0)
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
