/** Makes the link of a board: for how long, what it lets others see, and the link itself, which is shown once. */
import { useRef, useState } from 'preact/hooks'
import { type Consumer, newToken } from '../../client/browser.ts'
import type { ChartSpec } from '../board.ts'
import { boardLink, scopeOf, tokenNameOf } from '../board-link.ts'
import { useIsListed } from '../query.ts'
import { linkTo } from '../route.ts'
import { useExecution } from './execution.ts'

const DAY_S = 86_400
const DAYS = [1, 7, 30, 90] as const

interface ShareBoardProps {
  readonly consumer: Consumer
  /** Whose token it is: `name`, or `tenant/name`. */
  readonly identity: string
  readonly charts: readonly ChartSpec[]
  readonly name: string
}

export function ShareBoard({ consumer, identity, charts, name }: ShareBoardProps) {
  const mayShare = useIsListed(consumer, 'producer.controls', 'token.add')
  const dialog = useRef<HTMLDialogElement>(null)
  const made = useRef('')
  const [days, setDays] = useState<number>(7)
  const [link, setLink] = useState('')
  const [copied, setCopied] = useState('')
  const execution = useExecution(consumer, ({ outcome }) => {
    if (outcome === 'ok') setLink(boardLink(location.href, charts, name, made.current))
  })
  if (!mayShare) return null
  const { run } = execution
  const scope = scopeOf(charts)
  const problem =
    run.kind === 'refused' || run.kind === 'lost'
      ? run.text
      : run.kind === 'ended' && run.outcome !== 'ok'
        ? run.detail
        : ''
  const open = (): void => {
    execution.reset()
    made.current = ''
    setLink('')
    setCopied('')
    dialog.current?.showModal()
  }
  const make = (): void =>
    void execution.execute('token.add', async () => {
      const { token, hash } = await newToken()
      made.current = token
      const [user = '', tenant] = identity.split('/').reverse()
      const owner = { user, ...(tenant !== undefined && { tenant }) }
      return { ...owner, hash, name: tokenNameOf(name), scope: scope ?? '', expires_in_s: BigInt(days * DAY_S) }
    })
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(link)
      setCopied('copied')
    } catch {
      setCopied('The browser does not let the page copy it: select it, and copy it by hand.')
    }
  }
  return (
    <>
      <button type="button" class="plain" onClick={open}>
        Share
      </button>
      <dialog ref={dialog} aria-label="Link to this board" class="share">
        {scope === undefined ? (
          <p role="alert">
            There is no link for this board: it has more metrics than a token can name (62), or one whose name has
            blanks or a semicolon.
          </p>
        ) : link === '' ? (
          <>
            <p>
              Whoever has the link sees this board without signing in, until it expires or is revoked. It lets them read
              the metrics of the board, of every source and with every argument, and nothing else.
            </p>
            <p>
              <label>
                Expires after{' '}
                <select value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
                  {DAYS.map((count) => (
                    <option key={count} value={count}>
                      {count === 1 ? 'a day' : `${count} days`}
                    </option>
                  ))}
                </select>
              </label>
            </p>
          </>
        ) : (
          <div role="status">
            <p>
              This is the link. It is shown only now. The token in it is listed, and can be revoked, under{' '}
              <a href={linkTo('access', 'tokens')}>Access, Tokens</a>.
            </p>
            <p class="token">
              <code>{link}</code>
            </p>
          </div>
        )}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button type="button" autofocus onClick={() => dialog.current?.close()}>
            {link === '' ? 'Cancel' : 'Close'}
          </button>
          {scope === undefined ? null : link === '' ? (
            <button type="button" class="first" disabled={run.kind === 'running'} onClick={make}>
              Make the link
            </button>
          ) : (
            <button type="button" class="first" onClick={() => void copy()}>
              Copy
            </button>
          )}
          <span class="note" role="status">
            {copied}
          </span>
        </div>
      </dialog>
    </>
  )
}
