/** What a state looks like. States differ by shape as well as by colour. */
import type { Look } from '../fleet.ts'

const shapes: Readonly<Record<Look, string>> = { good: '●', attention: '◆', gone: '○' }

interface StateProps {
  readonly look: Look
  readonly text: string
  /** Why it is so, below it. */
  readonly detail?: string
}

export function State({ look, text, detail = '' }: StateProps) {
  return (
    <span class="state">
      <span class={`shape ${look}`} aria-hidden="true">
        {shapes[look]}
      </span>{' '}
      {text}
      {detail === '' ? null : <small>{detail}</small>}
    </span>
  )
}
