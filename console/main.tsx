/** Starts the console in the page that loads this script. */
import { render } from 'preact'
import { App } from './app.tsx'
import { Router } from './route.ts'
import { Session } from './session.ts'

// A proxy may have the server below a path of its own: this script is at console/assets/ there.
const monitor = new URL('../../monitor', import.meta.url)

render(<App session={new Session(monitor)} monitor={monitor} router={new Router(window)} />, document.body)
