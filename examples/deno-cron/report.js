/** The work of one slot; it takes its token to what it changes. */
export const writeReport = async ({ slot, token, signal }) => {
  // Right before what is changed: the authority may have ended meanwhile.
  signal.throwIfAborted();
  console.log(`${new Date(slot).toISOString()} is written with token ${token}`);
};
