/** What concerns all charts of a page: how much time they show and up to when, and whether they go on. */
import { useState } from 'preact/hooks'
import { lengthText, momentText, RECENT, REMEMBERED, timeOfFields } from '../chart-time.ts'
import type { ChartPage } from './chart-page.ts'

/** `5 m`, `7 d`. */
function lengthName(seconds: number): string {
  return lengthText(seconds).replace(/(?=[a-z])/, ' ')
}

export function ChartControls({ page }: { readonly page: ChartPage }) {
  const [isChoosing, setChoosing] = useState(false)
  const { seconds, at } = page.time.value
  const isZoomed = page.zoomed.value !== undefined
  const isRemembered = page.isRemembered.value === true
  const isPaused = page.isPaused.value
  return (
    <>
      <p class="choices ranges">
        {isZoomed ? (
          <button type="button" class="plain" onClick={() => page.zoomTo(undefined)}>
            whole time
          </button>
        ) : null}
        {at === undefined ? null : (
          <button type="button" class="plain" onClick={() => page.show({ seconds, at: undefined })}>
            now
          </button>
        )}
        <button type="button" class="plain" aria-pressed={isPaused} onClick={() => page.pause(!isPaused)}>
          {isPaused ? 'go on' : 'pause'}
        </button>
        {isRemembered ? (
          <>
            <button type="button" class="plain" aria-label="Earlier" onClick={() => page.turn(-1)}>
              ←
            </button>
            <button type="button" class="plain" aria-label="Later" onClick={() => page.turn(1)} disabled={page.isLive}>
              →
            </button>
          </>
        ) : null}
        {(isRemembered ? REMEMBERED : RECENT).map((length) => (
          <button
            key={length}
            type="button"
            class="plain"
            aria-pressed={length === seconds && !isZoomed}
            onClick={() => page.show({ seconds: length, at })}
          >
            {lengthName(length)}
          </button>
        ))}
        {isRemembered ? (
          <button type="button" class="plain" aria-expanded={isChoosing} onClick={() => setChoosing(!isChoosing)}>
            from … to
          </button>
        ) : null}
      </p>
      {isChoosing ? <Between page={page} /> : null}
    </>
  )
}

/** Any range, in the time of the browser. */
function Between({ page }: { readonly page: ChartPage }) {
  const { from, to } = page.shown.peek()
  const [fields, setFields] = useState({ from: momentText(from), to: momentText(Math.min(to, page.now())) })
  const [problem, setProblem] = useState('')
  const field = (name: 'from' | 'to', label: string) => (
    <label>
      {label}
      <input
        type="datetime-local"
        step="1"
        name={name}
        required
        value={fields[name]}
        onInput={({ currentTarget }) => setFields({ ...fields, [name]: currentTarget.value })}
      />
    </label>
  )
  return (
    <form
      class="between"
      aria-label="The time to show"
      onSubmit={(event) => {
        event.preventDefault()
        const time = timeOfFields(fields.from, fields.to)
        setProblem(typeof time === 'string' ? time : '')
        if (typeof time !== 'string') page.show(time)
      }}
    >
      {field('from', 'From')}
      {field('to', 'To')}
      <button type="submit">Show</button>
      {problem === '' ? null : (
        <span class="problem" role="alert">
          {problem}
        </span>
      )}
    </form>
  )
}
