/** What this user may execute: a list, and for each control a form that is made of its parameters. */
import { useRef, useState } from 'preact/hooks'
import type { Consumer, Plain, PlainRecord } from '../../client/browser.ts'
import { messageOf, recordsOf, useQuery } from '../parts/query.ts'
import { State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'

interface Parameter {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly description: string
}

interface Control {
  readonly name: string
  readonly description: string
  readonly parameters: readonly Parameter[]
}

export function ControlsView({ consumer, router }: ViewProps) {
  const name = router.route.value.object
  const answer = useQuery(consumer, 'producer.controls', {})
  if (answer.kind === 'waiting') return null
  if (answer.kind === 'refused') {
    return (
      <p class="banner" role="alert">
        {answer.reason}
      </p>
    )
  }
  const controls = recordsOf(answer.sample.plain) as unknown as readonly Control[]
  if (name === '') return <List controls={controls} />
  const control = controls.find((one) => one.name === name)
  return control === undefined ? (
    <p class="empty">
      There is no control {name}, or you may not run it. <a href={linkTo('controls')}>All controls</a>
    </p>
  ) : (
    <Form key={name} consumer={consumer} control={control} />
  )
}

function List({ controls }: { readonly controls: readonly Control[] }) {
  return (
    <>
      <header>
        <h1>Controls</h1>
      </header>
      <section class="card" aria-label="Controls">
        {controls.length === 0 ? <p class="empty">Your role may not run any control.</p> : null}
        <table>
          <tbody>
            {controls.map(({ name, description }) => (
              <tr key={name}>
                <td class="code">
                  <a href={linkTo('controls', name)}>{name}</a>
                </td>
                <td>{description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  )
}

type Run =
  | { readonly kind: 'idle' | 'running' }
  | {
      readonly kind: 'ended'
      readonly outcome: string
      readonly detail: string
      readonly value: string
      readonly transaction: number
    }
  | { readonly kind: 'refused'; readonly text: string }

function Form({ consumer, control }: { readonly consumer: Consumer; readonly control: Control }) {
  const [run, setRun] = useState<Run>({ kind: 'idle' })
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const form = useRef<HTMLFormElement>(null)
  // A second press of what was pressed runs nothing again.
  const isRunning = useRef(false)

  const execute = async (isDry: boolean): Promise<void> => {
    if (isRunning.current || form.current?.reportValidity() === false) return
    isRunning.current = true
    setRun({ kind: 'running' })
    try {
      const args = {
        ...toArguments(control.parameters, values),
        idempotency_key: crypto.randomUUID(),
        ...(isDry && { dry_run: true }),
      }
      const sample = await consumer.execute(control.name, args)
      const { outcome, detail, value = null } = sample.plain as PlainRecord
      setRun({
        kind: 'ended',
        outcome: outcome === 'dry-run' ? 'allowed: nothing was run' : String(outcome),
        detail: String(detail ?? ''),
        value: shown(value),
        transaction: sample.transaction,
      })
    } catch (error) {
      setRun({ kind: 'refused', text: messageOf(error) })
    }
    isRunning.current = false
  }

  return (
    <>
      <header>
        <h1 class="code">{control.name}</h1>
      </header>
      <p>{control.description}</p>
      <form
        ref={form}
        class="card fields"
        aria-label={control.name}
        onSubmit={(event) => {
          event.preventDefault()
          void execute(false)
        }}
      >
        {control.parameters.map((parameter) => (
          <Field
            key={parameter.name}
            parameter={parameter}
            value={values[parameter.name] ?? ''}
            onChange={(value) => setValues({ ...values, [parameter.name]: value })}
          />
        ))}
        <div class="row">
          <button type="button" disabled={run.kind === 'running'} onClick={() => void execute(true)}>
            Dry run
          </button>
          <button type="submit" class="first" disabled={run.kind === 'running'}>
            {run.kind === 'running' ? 'Running …' : 'Run'}
          </button>
        </div>
      </form>
      <Result run={run} />
    </>
  )
}

interface FieldProps {
  readonly parameter: Parameter
  readonly value: string
  readonly onChange: (value: string) => void
}

function Field({ parameter: { name, type, optional, description }, value, onChange }: FieldProps) {
  const id = `field-${name}`
  return (
    <p>
      <label for={id}>
        <span class="code">{name}</span>{' '}
        <small>
          {type}
          {optional ? ', may be left out' : ''}
        </small>
      </label>
      {type === 'boolean' ? (
        <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          <option value="">{optional ? 'left out' : 'choose'}</option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      ) : (
        <input
          id={id}
          required={!optional}
          {...(/password|secret/.test(name) ? { type: 'password' } : { type: 'text' })}
          inputmode={isNumber(type) ? 'numeric' : 'text'}
          pattern={isNumber(type) ? '-?[0-9]+([.][0-9]+)?' : undefined}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
      <small>{description}</small>
    </p>
  )
}

function Result({ run }: { readonly run: Run }) {
  if (run.kind === 'refused') {
    return (
      <p class="banner" role="alert">
        {run.text}
      </p>
    )
  }
  if (run.kind !== 'ended') return null
  const isGood = run.outcome === 'ok' || run.outcome.startsWith('allowed')
  return (
    <section class="card" aria-label="Result" aria-live="polite">
      <div class="head">
        <h2>Result</h2>
        <State look={isGood ? 'good' : 'attention'} text={run.outcome} detail={run.detail} />
        <p class="note">transaction {run.transaction}</p>
      </div>
      {run.value === '' ? null : <pre class="padded">{run.value}</pre>}
    </section>
  )
}

function isNumber(type: string): boolean {
  return /^(u?int|double)/.test(type)
}

/** What was left empty is left out. */
function toArguments(
  parameters: readonly Parameter[],
  values: Readonly<Record<string, string>>,
): Record<string, string | number | boolean | bigint> {
  const args: Record<string, string | number | boolean | bigint> = {}
  for (const { name, type } of parameters) {
    const text = values[name] ?? ''
    if (text === '') continue
    if (type === 'boolean') args[name] = text === 'true'
    else if (/64$/.test(type)) args[name] = BigInt(text)
    else args[name] = isNumber(type) ? Number(text) : text
  }
  return args
}

function shown(value: Plain): string {
  if (value === null) return ''
  return typeof value === 'string'
    ? value
    : JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part), 2)
}
