/**
 * One EXECUTE at a time, from the press of a button to its result. Each press has one idempotency key: whatever is pressed meanwhile
 * runs nothing, and after a lost connection the same key gets the result of what has run [MON 10].
 */
import { useRef, useState } from 'preact/hooks'
import { ConnectionError, type Consumer, type Plain, type PlainRecord } from '../../client/browser.ts'
import type { Arguments } from '../query.ts'
import { reasonOf } from '../refusals.ts'

/** How often it is asked again after a lost connection before somebody has to press for it. */
const MAX_ATTEMPTS = 5

export interface Ended {
  readonly kind: 'ended'
  readonly outcome: string
  readonly detail: string
  readonly value: Plain
  /** The id of the result, which its audit records have too. */
  readonly id: number
  /** The time of the server when the button was pressed, microseconds since 1970. */
  readonly begun: number
}

export type Run =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly isRepeated: boolean }
  | Ended
  | { readonly kind: 'refused'; readonly text: string }
  /** The connection was lost; `again` asks for the result of the same press. */
  | { readonly kind: 'lost'; readonly text: string }

interface Press {
  readonly control: string
  readonly args: Arguments
  readonly at: number
}

interface ExecuteOptions {
  readonly isDry?: boolean
}

export interface Execution {
  readonly run: Run
  /** Never rejects: whatever fails, the making of the arguments too, is the text of the refusal. */
  readonly execute: (
    control: string,
    argsOf: () => Arguments | Promise<Arguments>,
    options?: ExecuteOptions,
  ) => Promise<void>
  readonly again: () => Promise<void>
  /** Forgets the result. */
  readonly reset: () => void
}

/** `onEnd` is given each result, also one that was asked for again. */
export function useExecution(consumer: Consumer, onEnd?: (run: Ended) => void): Execution {
  const [run, setRun] = useState<Run>({ kind: 'idle' })
  const isRunning = useRef(false)
  const lost = useRef<Press>(undefined)

  const ask = async (made: () => Press | Promise<Press>): Promise<void> => {
    if (isRunning.current) return
    isRunning.current = true
    setRun({ kind: 'running', isRepeated: false })
    const end = await endOf(made)
    isRunning.current = false
    setRun(end)
    if (end.kind === 'ended') onEnd?.(end)
  }
  const endOf = async (made: () => Press | Promise<Press>): Promise<Run> => {
    try {
      const press = await made()
      const end = await resultOf(consumer, press, () => setRun({ kind: 'running', isRepeated: true }))
      lost.current = end.kind === 'lost' ? press : undefined
      return end
    } catch (error) {
      return { kind: 'refused', text: reasonOf(error) }
    }
  }
  return {
    run,
    execute: (control, argsOf, { isDry = false } = {}) =>
      ask(async () => {
        const at = performance.now()
        const own = isDry ? { dry_run: true } : { idempotency_key: crypto.randomUUID() }
        return { control, args: { ...(await argsOf()), ...own }, at }
      }),
    async again() {
      const { current } = lost
      if (current !== undefined) await ask(() => current)
    },
    reset: () => setRun({ kind: 'idle' }),
  }
}

async function resultOf(consumer: Consumer, { control, args, at }: Press, repeated: () => void): Promise<Run> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { plain, time, id } = await consumer.execute(control, args)
      const { outcome, detail, value = null } = plain as PlainRecord
      const begun = time - (performance.now() - at) * 1000
      return { kind: 'ended', outcome: String(outcome), detail: String(detail ?? ''), value, id, begun }
    } catch (error) {
      if (!(error instanceof ConnectionError)) return { kind: 'refused', text: reasonOf(error) }
      // The command waits for the next connection.
      if (attempt === MAX_ATTEMPTS) return { kind: 'lost', text: reasonOf(error) }
      repeated()
    }
  }
}
