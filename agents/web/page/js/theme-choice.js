// Not a module, so that it runs before anything is painted: neither a chosen theme nor what is left
// out of a frame flashes.
(() => {
  const theme = localStorage.getItem("ldpstream.theme");
  if (new URLSearchParams(location.search).get("embed") === "1") {
    document.documentElement.dataset.embed = "";
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
